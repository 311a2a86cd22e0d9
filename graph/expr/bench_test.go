package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// bigState is a state of about size bytes of text: items of some 200 bytes, as a workflow that collects things has.
func bigState(size int) map[string]any {
	items := []any{}
	for n := 0; n*200 < size; n++ {
		items = append(items, map[string]any{
			"id": fmt.Sprintf("item-%06d", n), "score": float64(n%97) / 7, "group": fmt.Sprint("g", n%10), "done": n%3 == 0,
			"title": "A title of ordinary length", "body": strings.Repeat("words of a body, ", 4), "tags": []any{"x", "y"},
		})
	}
	return map[string]any{"items": items, "intent": "billing", "confidence": 0.9, "customer": map[string]any{"tier": "gold"}}
}

// honest are programs as people write them for switches, assignments and reports.
var honest = []string{
	`.`,
	`.customer.tier`,
	`.intent == "billing" and .confidence > 0.8`,
	`.items | length`,
	`.items | map(select(.done)) | length`,
	`[.items[] | select(.score > 10 and .group == "g3") | {id, score}]`,
	`.items | sort_by(-.score, .id) | .[:10] | map(.id)`,
	`.items | group_by(.group) | map({key: .[0].group, value: (map(.score) | add / length)}) | from_entries`,
	`reduce .items[] as $i ({}; .[$i.group] += $i.score)`,
	`reduce .items[] as $i ({}; .[$i.id] = $i)`,
	`reduce .items[] as $i ([]; . + [$i.id])`,
	`reduce .items[] as $i (""; . + $i.title + "\n")`,
	`INDEX(.items[]; .id) | length`,
	`.items | unique_by(.group) | map(.group)`,
	`.items[] |= (.score |= . * 2 | .seen = true)`,
	`.items |= map(. + {seen: true})`,
	`del(.items[] | select(.done))`,
	`.items |= map(del(.body))`,
	`[.items[].body] | join(" ") | gsub("(?<w>w\\w+)"; "<\(.w)>") | length`,
	`[.items[] | select(.body | test("body, words"; "i"))] | length`,
	`[.items[].body | scan("\\w+")] | group_by(.) | map({w: .[0], n: length})`,
	`[.items[].title | split(" ") | .[]] | unique`,
	`tojson | fromjson | .items | length`,
	`[.. | strings] | length`,
	`walk(if type == "string" then ascii_upcase else . end)`,
	`.items | map("\(.id): \(.title)") | join("\n")`,
	`[paths(type == "number")] | length`,
	`(.items | map({key: .id, value: .score}) | from_entries) as $by | [.items[] | $by[.id]] | add`,
	`.items | to_entries | map(select(.key % 100 == 0) | .value.id)`,
	`[.items[] | .id | ltrimstr("item-") | tonumber] | max`,
	`.items | [limit(5; .[] | select(.score > 13))]`,
	`any(.items[]; .id == "item-000100")`,
	`[.items[].id] - [.items[:100][].id] | length`,
	`[.. | .id? // empty] | length`,
	`reduce (.items[] | .tags[]?) as $t ({}; .[$t] += 1)`,
	`[.items[] | (.title | tonumber)? // 0] | add`,
	`.items | map(.body | gsub("\\s+"; " ") | ascii_downcase | length) | add`,
	`[.items[].body | capture("(?<first>\\w+) (?<second>\\w+)")] | map(.second) | unique`,
	`.items | map(select(.title | startswith("A"))) | map({id, short: .body[:20], last: .tags[-1]}) | length`,
	`def total: if type == "array" then map(total) | add else .score end; .items | total`,
}

// TestHonestProgramsPass: each stays under the default limits over a state of 2 MiB, the most that a host may send. To
// be quick about it the state is an eighth of that; all of these take time that grows as the state does.
func TestHonestProgramsPass(t *testing.T) {
	t.Parallel()
	const part = 8
	state := bigState(2 << 20 / part)
	limits := expr.DefaultLimits()
	for _, src := range honest[:soak.Size(len(honest), 3, len(honest))] {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units, bytes, err := expr.Taken(p, state)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if units > limits.Cost/part*9/10 {
			t.Errorf("%s: %d units", src, units)
		}
		if bytes > limits.Memory/part*9/10 {
			t.Errorf("%s: %d bytes", src, bytes)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	state := bigState(320 << 10)
	for _, src := range honest {
		p, err := expr.Compile(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInterpreter runs the same programs on the interpreter alone, without budgets: what BenchmarkEval is held
// against.
func BenchmarkInterpreter(b *testing.B) {
	state := bigState(320 << 10)
	for _, src := range honest {
		query, err := gojq.Parse(src)
		if err != nil {
			b.Fatal(err)
		}
		code, err := gojq.Compile(query)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				outputs := code.Run(state)
				for v, ok := outputs.Next(); ok; v, ok = outputs.Next() {
					if err, failed := v.(error); failed {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkEvalSmallState(b *testing.B) {
	state := object(b, `{"intent":"billing","confidence":0.9,"customer":{"tier":"gold"},"n":5}`)
	for _, src := range []string{`.`, `.customer.tier`, `.intent == "billing" and .confidence > 0.8`, `.n + 1`, `{tier: .customer.tier, n}`, `"\(.intent): \(.n)"`, `.n += 1`} {
		p, err := expr.Compile(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, src := range []string{`.a.b`, `.intent == "billing" and .confidence > 0.8`, `.items | map(select(.x)) | sort_by(.y) | .[0]`, `gsub("a"; "b")`} {
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := expr.Compile(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestHonestProgramsAreTheInterpreters compares the results of the same programs with those of the interpreter.
func TestHonestProgramsAreTheInterpreters(t *testing.T) {
	t.Parallel()
	state := bigState(16 << 10)
	for _, src := range honest {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Eval(state)
		want, wantErr := expr.Interpreter(src, state)
		if err != nil || wantErr != nil || !jsonvalue.Equal(got, want) {
			t.Errorf("%s: %v, %v; the interpreter %v, %v", src, got, err, want, wantErr)
		}
	}
}
