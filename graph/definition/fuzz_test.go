package definition_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func seeds(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "bases", "*.json"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, text := range []string{
		spelling1, spelling2, astral, yamlLinear, ``, `{`, `[]`, `{"nodes":[null],"edges":[null]}`, "a: &x [*x]\n", "? [a]\n: !!binary x\n",
		`{"document":{},"state_schema":{"properties":5},"nodes":[{"id":"a","type":"parallel"}],"edges":[{"source":"a","target":"a"}]}`,
		`{"signature":{"value":"x"},"document":{"signature":{"value":"y"}}}`,
	} {
		f.Add([]byte(text))
	}
}

// compileFuzzed compiles what could be read and checks what must hold of every answer.
func compileFuzzed(t *testing.T, d *definition.Document) {
	t.Helper()
	p, findings := definition.Compile(d, definition.Options{})
	if (p == nil) != findings.HasErrors() {
		t.Fatalf("program %v beside\n%s", p != nil, list(findings))
	}
	for _, f := range findings {
		if f.Code == "" || f.Message == "" || f.Severity != problem.SeverityError && f.Severity != problem.SeverityWarning {
			t.Fatalf("an unfinished finding: %+v", f)
		}
	}
	again, err := definition.Parse(d.Canonical())
	if err != nil {
		t.Fatalf("the canonical text cannot be read: %v\n%s", err, d.Canonical())
	}
	if again.Hash() != d.Hash() {
		t.Fatalf("the canonical text has another hash\n%s\n%s", d.Canonical(), again.Canonical())
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := definition.Parse(src)
		if err != nil {
			if e, ok := problem.As(err); !ok || len(e.Findings) == 0 {
				t.Fatalf("an error without findings: %v", err)
			}
			return
		}
		compileFuzzed(t, d)
	})
}

func FuzzParseYAML(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := definition.ParseYAML(src)
		if err != nil {
			if e, ok := problem.As(err); !ok || len(e.Findings) == 0 {
				t.Fatalf("an error without findings: %v", err)
			}
			return
		}
		compileFuzzed(t, d)
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"500ms", " 10 S", "1h30m", "PT1H", "9999999999999999999h", "5 weeks", "p1dt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := definition.ParseDuration(s)
		if err == nil && d < 0 {
			t.Fatalf("%q is %v", s, d)
		}
		if e, ok := problem.As(err); err != nil && (!ok || e.Hint == "") {
			t.Fatalf("%q: an error without a hint: %v", s, err)
		}
	})
}
