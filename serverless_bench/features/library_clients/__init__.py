"""Parts of clients whose library has its own connections, and tells less than our client sees."""
