package jsonvalue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// record is the size and shape of what the engine writes for each node.
func record() map[string]any {
	return map[string]any{
		"executionId": "0198a3f2-6c1e-7b52-9d3a-5f0e8c7b1a24",
		"nodeId":      "classify_intent",
		"visit":       float64(3),
		"attempt":     float64(1),
		"scheduledAt": "2026-01-01T00:00:00.000Z",
		"state": map[string]any{
			"intent": "billing", "confidence": 0.87, "escalated": false, "ticket": nil,
			"messages": []any{
				map[string]any{"role": "user", "content": "I was charged twice for the same order, please help me out."},
				map[string]any{"role": "assistant", "content": "Sorry to hear that!\nLet me look at the \"order\"."},
			},
			"tags": []any{"vip", "refund", "zürich"},
		},
	}
}

// bigState is a state of about size bytes of canonical text.
func bigState(size int) map[string]any {
	items := []any{}
	for n := 0; n < size; n += 290 {
		items = append(items, map[string]any{
			"id": fmt.Sprintf("item-%06d", n), "score": float64(n) / 7, "count": float64(n % 100), "done": n%2 == 0,
			"title": "A title of ordinary length", "body": strings.Repeat("some words of a body ", 8),
			"nested": map[string]any{"a": float64(1), "b": []any{"x", nil}},
		})
	}
	return map[string]any{"items": items, "cursor": "abc", "total": float64(len(items))}
}

func benchmarkValues(b *testing.B, run func(b *testing.B, v any)) {
	for _, bench := range []struct {
		name  string
		value any
	}{{"record", record()}, {"320KB", bigState(320 << 10)}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(jsonvalue.Canonical(bench.value))))
			b.ReportAllocs()
			run(b, bench.value)
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		var dst []byte
		for b.Loop() {
			dst = jsonvalue.Append(dst[:0], v)
		}
	})
}

// BenchmarkMarshalStandard is what Append is measured against.
func BenchmarkMarshalStandard(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		for b.Loop() {
			if _, err := json.Marshal(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		text := jsonvalue.Canonical(v)
		for b.Loop() {
			if _, err := jsonvalue.Decode(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkUnmarshalStandard is what Decode is measured against.
func BenchmarkUnmarshalStandard(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		text := jsonvalue.Canonical(v)
		for b.Loop() {
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		text := jsonvalue.Canonical(v)
		for b.Loop() {
			if _, problems := jsonvalue.Parse(text, 0, 0); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	})
}

func BenchmarkHash(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		for b.Loop() {
			jsonvalue.Hash(v)
		}
	})
}

func BenchmarkClone(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		for b.Loop() {
			jsonvalue.Clone(v)
		}
	})
}

func BenchmarkEqual(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		other := jsonvalue.Clone(v)
		for b.Loop() {
			if !jsonvalue.Equal(v, other) {
				b.Fatal("not equal")
			}
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		for b.Loop() {
			if _, err := jsonvalue.Normalize(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSize(b *testing.B) {
	benchmarkValues(b, func(b *testing.B, v any) {
		for b.Loop() {
			jsonvalue.Size(v, 0)
		}
	})
}
