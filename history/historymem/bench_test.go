package historymem_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historytest"
)

func BenchmarkStore(b *testing.B) {
	historytest.Benchmark(b, open)
	historytest.BenchmarkList(b, open)
}
