"""The start barrier: functions wait for each other before the first operation."""
