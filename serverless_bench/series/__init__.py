"""A job again and again: in turns, by level, and what follows from it.

``task`` is the engine: it makes each run in a directory of its own, within the limit of cost of
all of them, and deletes its objects. ``turns`` and ``ab`` run sides in turns, ``scale`` runs more
and more functions, ``limit`` searches. Commands and Python users call the same functions.
"""
