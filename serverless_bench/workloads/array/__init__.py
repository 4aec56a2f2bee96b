"""Arrays, through a library that writes, appends to and reads them."""
