// Package pgtest starts a real PostgreSQL server for the tests of a package.
package pgtest
