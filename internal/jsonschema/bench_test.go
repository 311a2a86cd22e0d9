package jsonschema_test

import (
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

func wideSchema(n int) map[string]any {
	properties := map[string]any{}
	for i := range n {
		properties[fmt.Sprintf("key%d", i)] = map[string]any{"type": []any{"string", "number"}}
	}
	return map[string]any{"type": "object", "properties": properties}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{5, 50, 500, 4000} {
		b.Run(fmt.Sprintf("properties=%d", n), func(b *testing.B) {
			raw := wideSchema(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonschema.Compile(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, n := range []int{5, 500} {
		b.Run(fmt.Sprintf("properties=%d", n), func(b *testing.B) {
			s, err := jsonschema.Compile(wideSchema(n))
			if err != nil {
				b.Fatal(err)
			}
			v := map[string]any{}
			for i := range n {
				v[fmt.Sprintf("key%d", i)] = "text"
			}
			b.ReportAllocs()
			for b.Loop() {
				if vs := s.Validate(v); vs != nil {
					b.Fatal(vs)
				}
			}
		})
	}
}
