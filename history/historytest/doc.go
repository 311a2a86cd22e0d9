// Package historytest holds the tests that every history.Store has to pass, benchmarks for comparing stores, and a wrapper that
// injects faults.
//
//	func TestStore(t *testing.T) {
//		historytest.Run(t, func(_ testing.TB, now func() time.Time) history.Store {
//			return historymem.NewWith(historymem.Options{Now: now})
//		})
//	}
//
// A store that outlives the process passes RunPersistent too.
package historytest
