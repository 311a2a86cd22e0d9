// Package historytest holds the tests that every history.Store has to pass, benchmarks that compare stores, and a
// wrapper that makes a store fail on purpose.
//
//	func TestStore(t *testing.T) {
//		historytest.Run(t, func(t testing.TB) history.Store { return historymem.New() })
//	}
package historytest
