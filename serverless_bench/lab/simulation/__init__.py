"""What a job would do at any number of functions: a run directory from a model, no store asked.

``model`` has the parameters and their sources, ``demand`` what is to be moved, ``launch`` when
functions start, ``store`` what is admitted and how fast; ``engine`` moves time forward, in the
``steps`` that it needs; ``records`` makes of it what workers would have left, and
``simulated_run`` does all of this.
"""
