package expr_test

import (
	"math/rand/v2"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestDirectPrograms(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		`.`: true, `.a`: true, `.a.b."c d".["e"]`: true, `."a"`: true, `.["a"]`: true, `.a == "x"`: true, `.a.b > -0.8`: true,
		`.a == "x" and (.b <= 2 or .c != null)`: true, `.a // "d"`: true, `true`: true, `(.a)`: true, `.a == .b`: true,
		`.a[0]`: false, `.a[]`: false, `.a?`: false, `.a + 1`: false, `.a | .b`: false, `.a, .b`: false, `"\(.a)"`: false, `[.a]`: false,
		`not`: false, `..`: false, `.a as $x | $x`: false, `def f: 1; .a`: false, `-.a`: false, `.a == 1e1000`: false, `(.a).b`: false,
		`.[.a]`: false, `.a = 1`: false, `.["a", "b"]`: false, `."a\(1)"`: false, `.a[1:]`: false,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if expr.IsDirect(p) != want {
			t.Errorf("%s: direct is %v", src, !want)
		}
	}
}

// TestDirectIsTheInterpreter evaluates random programs of the simple kinds both ways.
func TestDirectIsTheInterpreter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var program func(depth int) string
	program = func(depth int) string {
		if depth == 0 || random.IntN(4) == 0 {
			return pick(`.`, `.n`, `.s`, `.o`, `.o.a`, `.o.c.x`, `.l`, `.nil.x`, `.n.x`, `.t`, `.missing`, `.["e"]`, `."u"`, `.neg`, `.mixed`,
				`1`, `5`, `-7`, `2.5`, `0`, `"one"`, `""`, `true`, `false`, `null`, `-0`, `9007199254740993`)
		}
		return "(" + program(depth-1) + " " + pick("==", "!=", "<", "<=", ">", ">=", "and", "or", "//") + " " + program(depth-1) + ")"
	}
	state := object(t, sampleState)
	for range 2000 {
		src := program(3)
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if !expr.IsDirect(p) {
			t.Fatalf("%s: not direct", src)
		}
		got, gotErr := p.Eval(state)
		want, wantErr := expr.Interpreter(src, state)
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !jsonvalue.Equal(got, want) {
			t.Fatalf("%s: %s, %v; the interpreter gives %s, %v", src, jsonvalue.Canonical(got), gotErr, jsonvalue.Canonical(want), wantErr)
		}
	}
}
