"""What a job would do at any number of functions: a run directory from a model, no store asked.

``model`` has the parameters and their sources, ``demand`` what is to be moved, ``launch`` when
functions start, ``store`` what is admitted and how fast, ``engine`` moves time forward,
``records`` makes of it what workers would have left, ``simulated_run`` does all of this.
"""
