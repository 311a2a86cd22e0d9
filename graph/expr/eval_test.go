package expr_test

import (
	"math"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestOutputs is the table of execution, 4.2.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ src, state, want string }{
		{`empty`, `{}`, `null`},
		{`halt`, `{}`, `null`},
		{`1, halt, 2`, `{}`, `1`},
		{`1, 2, halt`, `{}`, `[1,2]`},
		{`.list[]`, `{"list":[1]}`, `1`},
		{`.list[]`, `{"list":[1,2,3]}`, `[1,2,3]`},
		{`.list[]`, `{"list":[]}`, `null`},
		{`null, null`, `{}`, `[null,null]`},
		{`1, error("x")`, `{}`, `error`},
		{`1, .x.y.z`, `{"x":1}`, `error`},
		{`debug`, `{}`, `invalid`},
		{`stderr`, `{}`, `invalid`},
		{`1, halt_error`, `{}`, `error`},
		{`"x" | halt_error`, `{}`, `error`},
		{`"a" | ., halt_error(1)`, `{}`, `error`},
		{`# nothing but a comment`, `{}`, `invalid`},
		{`. # with a comment`, `{"a":1}`, `{"a":1}`},
		{`-1`, `{}`, `-1`},
		{`-.a`, `{"a":1}`, `-1`},
		{`-infinite`, `{}`, `-1.7976931348623157e+308`},
		{`"x" | debug("y")`, `{}`, `invalid`},
	} {
		t.Run(test.src, func(t *testing.T) {
			t.Parallel()
			check(t, test.src, test.state, test.want)
		})
	}
}

// TestTruthy is execution, 4.3.
func TestTruthy(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		`null`: false, `false`: false, `empty`: false, `nan`: false, `.missing`: false,
		`true`: true, `0`: true, `""`: true, `[]`: true, `{}`: true, `false, false`: true, `.tags[] == "x"`: true,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Eval(object(t, `{"tags":["a","b"]}`))
		if err != nil || expr.Truthy(v) != want {
			t.Errorf("%s: %v, %v", src, v, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	state := map[string]any{"i": 7, "big": 1 << 60, "l": []any{1, 2.5}}
	for src, want := range map[string]string{
		`.i`: `7`, `.big`: `1152921504606847000`, `.l`: `[1,2.5]`, `{a: [1, {b: 2}]}`: `{"a":[1,{"b":2}]}`, `nan`: `null`, `[nan]`: `[null]`,
		`-0`: `0`, `-0.0`: `0`, `[0 * -1.5]`: `[0]`, `infinite`: `1.7976931348623157e+308`, `[-infinite]`: `[-1.7976931348623157e+308]`,
		`pow(2; 70)`: `1.1805916207174113e+21`, `9007199254740993`: `9007199254740992`, `9007199254740992 + 1`: `9007199254740992`,
		`4294967296 * 4294967296`: `18446744073709552000`, `9007199254740992 - 18014398509481985`: `-9007199254740992`,
		`"12345678901234567890" | tonumber`: `12345678901234567000`, `reduce range(200) as $i (3; . * .)`: `1.7976931348623157e+308`,
		`[limit(3; range(9007199254740991; infinite))] | length`: `3`, `@base64d "\("/w==")"`: `"` + "\uFFFD" + `"`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Eval(state)
		if err != nil || string(jsonvalue.Canonical(v)) != want {
			t.Errorf("%s: %s, %v; want %s", src, jsonvalue.Canonical(v), err, want)
			continue
		}
		isModel(t, src, v)
	}
}

// isModel fails for what is not of the value model.
func isModel(t *testing.T, src string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil, bool, string:
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 && math.Signbit(v) {
			t.Errorf("%s: gives %v", src, v)
		}
	case []any:
		for _, e := range v {
			isModel(t, src, e)
		}
	case map[string]any:
		for _, e := range v {
			isModel(t, src, e)
		}
	default:
		t.Errorf("%s: gives a %T", src, v)
	}
}

// TestForeignValues: what is not of the model may fail, and must not panic.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	state := map[string]any{"a": int64(1), "b": []string{"x"}, "c": map[string]string{}, "d": struct{}{}, "e": big.NewInt(5), "f": func() {}}
	for _, src := range []string{`.`, `.a + 1`, `.b[]`, `.c.x`, `tojson`, `.d == 1`, `.e * 2`, `[.[]] | sort`, `.f | type`, `"\(.b)"`, `del(.a)`, `.d |= 1`, `.. | numbers`, `.a == 1`} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Eval(state)
		if e, ok := problem.As(err); err != nil && (!ok || e.Code != problem.ExpressionFailed) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`now`)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	if v, err := p.EvalAt(nil, expr.Env{Now: at}); err != nil || v != 1767323045.678 {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := p.Eval(nil); err == nil {
		t.Errorf("%v without a time", v)
	}
}

// TestNoZone: what the interpreter takes from the machine's time zone is the same everywhere here.
func TestNoZone(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`1425599621 | localtime == gmtime`:                                                          `true`,
		`1425599621 | localtime | mktime`:                                                           `1425599621`,
		`1425599621 | strflocaltime("%H:%M %Z")`:                                                    `"23:53 UTC"`,
		`"10:00 EST" | strptime("%H:%M %Z") | .[3]`:                                                 `10`,
		`"2024-02-29T10:11:12Z" | strptime("%Y-%m-%dT%H:%M:%SZ")`:                                   `[2024,1,29,10,11,12,4,59]`,
		`"2024-02-29T10:11:12+0200" | strptime("%Y-%m-%dT%H:%M:%S%z") | mktime`:                     `1709194272`,
		`"Thu, 05 Mar 2015 23:51:47.5" | strptime("%a, %d %b %Y %H:%M:%S.%f")? // "not understood"`: `[2015,2,5,23,51,47.5,4,63]`,
	} {
		check(t, src, `{}`, want)
	}
}

// TestSharedState: programs that delete and update run beside readers of the same state. Run it with -race.
func TestSharedState(t *testing.T) {
	t.Parallel()
	state := object(t, sampleState)
	want := string(jsonvalue.Canonical(state))
	var wg sync.WaitGroup
	for _, src := range []string{
		`del(.n)`, `del(.o.c.d[0])`, `.items[] |= empty`, `.items[].tags |= empty`, `delpaths([["o", "a"]])`, `map_values(empty)`,
		`walk(if type == "object" then del(.a) else . end)`, `.. |= .`, `.l |= sort`, `.o.a = 1`, `reduce range(9) as $i (.; .l[$i] = $i)`,
		`with_entries(.value |= tojson)`, `tojson`, `.l + [1]`, `[.items[]] | group_by(.k)`, `.l[1:] |= reverse`, `.`, `[.l, .l] | add`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			wg.Go(func() {
				for range 20 {
					if _, err := p.Eval(state); err != nil {
						t.Errorf("%s: %v", src, err)
						return
					}
				}
			})
		}
	}
	wg.Go(func() {
		for range 200 {
			jsonvalue.Canonical(state)
		}
	})
	wg.Wait()
	if got := string(jsonvalue.Canonical(state)); got != want {
		t.Errorf("the state was changed to %s", got)
	}
}

// TestConcurrentEvaluations: each has limits and a time of its own.
func TestConcurrentEvaluations(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`[range(.n)] | length + now`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 40 {
		wg.Go(func() {
			state := map[string]any{"n": float64(n * 100)}
			v, err := p.EvalWith(state, expr.Env{Now: time.Unix(int64(n), 1)}, expr.Limits{Cost: 10_000})
			if n > 30 {
				if err == nil {
					t.Errorf("%d: no limit", n)
				}
				return
			}
			if n < 10 && (err != nil || v != float64(n*101)) {
				t.Errorf("%d: %v, %v", n, v, err)
			}
		})
	}
	wg.Wait()
}

// TestAccumulatedTextsAndLists: additions written behind earlier ones do not show in those.
func TestAccumulatedTextsAndLists(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`reduce range(3000) as $i (""; . + "ab") | length`:                                                            `6000`,
		`("x" * 2000) as $s | [$s + "a", $s + "b", ($s + "a" | . + "c"), $s] | map(.[1998:])`:                         `["xxa","xxb","xxac","xx"]`,
		`("x" * 2000 + "a") as $s | [($s + "b"), ($s + "c"), ($s + "b" + "d")] | map(.[1999:])`:                       `["xab","xac","xabd"]`,
		`[range(100)] as $l | [$l + [1], $l + [2], ($l + [1] | . + [3]), $l] | map(.[99:])`:                           `[[99,1],[99,2],[99,1,3],[99]]`,
		`([range(100)] + ["a"]) as $l | [($l + ["b"]), ($l + ["c"]), ($l + ["b"] + ["d"])] | map(.[99:])`:             `[[99,"a","b"],[99,"a","c"],[99,"a","b","d"]]`,
		`([range(100)] + ["a"]) as $l | ($l + ["b"]) as $m | ($l | .[101] = "z") as $n | [$l, $m, $n] | map(.[100:])`: `[["a"],["a","b"],["a","z"]]`,
		`[foreach range(3) as $i ([range(100)]; . + [$i])] | map(.[100:])`:                                            `[[0],[0,1],[0,1,2]]`,
		`[foreach range(3) as $i ("x" * 2000; . + ($i | tostring))] | map(.[2000:])`:                                  `["0","01","012"]`,
		`reduce range(5000) as $i ([]; . + [$i]) | [length, .[4999]]`:                                                 `[5000,4999]`,
	} {
		check(t, src, `{}`, want)
	}
}
