"""A job again and again: in turns, by level, and what follows from it.

``runs`` is the engine: each run has a directory of its own, all keep within the limit of cost, and
their objects are deleted. ``turns`` runs sides in turns, ``scale`` runs more and more functions,
``limit`` searches. Commands and Python users call the same functions.
"""
