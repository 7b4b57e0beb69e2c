// Cargo wants a library in a package; this one only names what is fetched.
