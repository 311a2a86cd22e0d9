package httpapi

// Words are the names of the API in hints.
var Words = words
