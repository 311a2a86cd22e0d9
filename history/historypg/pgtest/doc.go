// Package pgtest starts a real PostgreSQL server for the tests of a package. The server listens on a socket in a temporary folder, not on the
// network, and ends with the test binary, also if that panics.
//
//	s, err := historypg.Open(t.Context(), pgtest.Shared(t).URL(), historypg.Options{Schema: pgtest.Schema(t)})
//
// Without an installed server the tests are skipped; with CI set that is a failure. The variable WORKFLOW_ENGINE_TEST_PG may name a running server
// instead.
package pgtest
