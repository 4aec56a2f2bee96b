"""Remote functions: launched by another service, found in the store.

``executor`` is what the executors inherit, ``launcher`` what hands invocations over, ``view``
what the driver sees of the control prefix, ``thread_pool`` waits for the network,
``requested_records`` are those that were found already, and ``map`` decides.
``probing`` is what functions are asked to try before.
"""
