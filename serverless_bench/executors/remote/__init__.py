"""Remote functions: launched by another service, found in the store.

``executor`` is what the executors inherit, ``launcher`` what hands invocations over, ``view``
what the driver sees of the control prefix and has requested of it, ``thread_pool`` waits for the
network, and ``map`` decides.
``probing`` is what functions are asked to try before.
"""
