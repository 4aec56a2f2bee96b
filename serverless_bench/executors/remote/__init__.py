"""Functions that are far away: launched by somebody else, found in the store.

``launcher`` is what hands invocations over, ``view`` what the driver sees of the control
prefix, ``crew`` the threads that wait for the network, ``seen`` what was found already,
and ``map`` decides.
"""
