"""Remote functions: launched by another service, with records in the store.

``executor`` is the base class of the executors, ``launcher`` starts invocations, ``view`` reads the
control prefix and tracks requested records, ``thread_pool`` waits for the network, and ``map``
makes the decisions. ``probing`` defines the probe of functions before a run.
"""
