package agentloop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// someValue makes a value of all kinds, with what has to be escaped and characters of several bytes.
func someValue(r *rand.Rand, depth int) any {
	texts := []string{"", "a", "zoë \"quoted\" \\ and \n new", "日本語テキスト", "😀 and \x01 control", "[1,2]}", strings.Repeat("long ", 40)}
	switch n := r.IntN(8); {
	case n < 2 && depth > 0:
		list := make([]any, r.IntN(12))
		for i := range list {
			list[i] = someValue(r, depth-1)
		}
		return list
	case n < 4 && depth > 0:
		m := map[string]any{}
		for range r.IntN(8) {
			m[[]string{"a", "b", "items", "x y", `q"q`, "größe"}[r.IntN(6)]] = someValue(r, depth-1)
		}
		return m
	case n == 4:
		return float64(r.IntN(1000)) / 8
	case n == 5:
		return r.IntN(2) == 0
	case n == 6:
		return nil
	}
	return texts[r.IntN(len(texts))]
}

func kept(l *Large, texts []string, read *int) func(int) (string, *Failure) {
	return func(i int) (string, *Failure) {
		*read++
		return texts[i], nil
	}
}

// TestPartsOfPiecesAreThoseOfTheWhole: whatever the pieces are cut like, a part of a result is the one that is read of a result in one piece.
func TestPartsOfPiecesAreThoseOfTheWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 11))
	for range 3000 {
		value := someValue(r, 4)
		l, texts := split(value, 1<<20, 4+r.IntN(40))
		if strings.Join(texts, "") == "" {
			continue // an empty text
		}
		v := View{Offset: r.IntN(30), Limit: r.IntN(10), MaxChars: 10 + r.IntN(300)}
		if r.IntN(3) == 0 {
			v.Offset, v.Limit = 0, 0
		}
		read := 0
		whole, f := v.Of("t1.c1", map[string]any{"output": value})
		part, g := v.OfLarge("t1.c1", l, kept(l, texts, &read))
		if l.Type == typeObject { // a whole one that is small is not shown as characters
			if m, ok := whole.(map[string]any); ok && m["value"] != nil || m["json"] == nil {
				continue
			}
		}
		if note, ok := whole.(map[string]any)["note"]; ok {
			part.(map[string]any)["note"] = note
		}
		if f != nil || g != nil || !jsonvalue.Equal(whole, part) {
			t.Fatalf("%+v of %s\nwhole  %s %v\npieces %s %v", v, jsonvalue.Canonical(value), jsonvalue.Canonical(whole), f, jsonvalue.Canonical(part), g)
		}
	}
}

// TestPathsLeadWhereJQLeads compares paths with the same programs of jq.
func TestPathsLeadWhereJQLeads(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	found := 0
	for range 4000 {
		value := someValue(r, 5)
		path, slice := "", [2]int{-1}
		for at, ok := value, true; ok && r.IntN(4) > 0; {
			switch v := at.(type) {
			case map[string]any:
				if ok = len(v) > 0; ok {
					name := slices.Sorted(maps.Keys(v))[r.IntN(len(v))]
					path, at = path+`[`+string(jsonvalue.Canonical(name))+`]`, v[name]
				}
			case []any:
				if ok = len(v) > 0; ok {
					i := r.IntN(len(v))
					if r.IntN(4) == 0 {
						slice = [2]int{i, i + r.IntN(4)}
						ok = false
						break
					}
					path, at = path+fmt.Sprintf("[%d]", i), v[i]
				}
			default:
				ok = false
			}
		}
		if slice[0] >= 0 {
			path += fmt.Sprintf("[%d:%d]", slice[0], slice[1])
		}
		l, texts := split(value, 1<<20, 4+r.IntN(30))
		if path == "" || l.Type == typeText {
			continue
		}
		found++
		v := View{JQ: "." + path, MaxChars: 20 + r.IntN(4000), Offset: r.IntN(3), Limit: r.IntN(4)}
		read := 0
		want, f := v.Of("t1.c1", map[string]any{"output": value})
		v.Path, v.JQ = "."+path, ""
		got, g := v.OfLarge("t1.c1", l, kept(l, texts, &read))
		if m, ok := got.(map[string]any); ok && m["note"] != nil {
			m["note"] = want.(map[string]any)["note"]
		}
		if f != nil || g != nil || !jsonvalue.Equal(want, got) {
			t.Fatalf("%+v of %s\njq   %s %v\npath %s %v", v, jsonvalue.Canonical(value), jsonvalue.Canonical(want), f, jsonvalue.Canonical(got), g)
		}
	}
	if found < 1000 {
		t.Errorf("%d paths", found)
	}
}

// TestAPathCutsWhereJQCuts: a value whose bytes do not fit is cut by both, though its characters would fit.
func TestAPathCutsWhereJQCuts(t *testing.T) {
	t.Parallel()
	value := map[string]any{"a": map[string]any{"t": "日本語"}}
	l, texts := split(value, 1<<20, 100)
	for most := 10; most < 24; most++ {
		read := 0
		want, f := View{JQ: ".a", MaxChars: most}.Of("t1.c1", map[string]any{"output": value})
		got, g := View{Path: ".a", MaxChars: most}.OfLarge("t1.c1", l, kept(l, texts, &read))
		if f != nil || g != nil || (want.(map[string]any)["value"] == nil) != (got.(map[string]any)["value"] == nil) {
			t.Errorf("%d: %s, %s", most, jsonvalue.Canonical(want), jsonvalue.Canonical(got))
		}
	}
}

// TestPathsThatLeadNowhere are told of, whatever stands in them.
func TestPathsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	value := map[string]any{"items": []any{1.0, map[string]any{"a": "x"}}, "text": "t"}
	for _, path := range []string{"items", ".nothing", ".items[2]", ".items.a", ".items[-1]", ".items[0:1].a", ".text[0:1]", ".text[0]", `["items`, "[", "..", ".[", ".items[a]", strings.Repeat("[0]", 200)} {
		out, f := View{Path: path, MaxChars: 100}.Of("t1.c1", map[string]any{"output": value})
		if f == nil || f.Code != problem.ExpressionFailed {
			t.Errorf("%s: %v %+v", path, out, f)
		}
	}
}

// TestFewPiecesAreRead: the index leads to an item and to a character, and a damaged piece is told of where it is read.
func TestFewPiecesAreRead(t *testing.T) {
	t.Parallel()
	list := make([]any, 200_000)
	for i := range list {
		list[i] = map[string]any{"n": float64(i), "of": "a list that is long"}
	}
	l, texts := Split(list, DefaultMaxBytes)
	if l == nil || len(texts) < 5 || len(l.Pieces) != len(texts) || l.Items != len(list) {
		t.Fatalf("%+v", l)
	}
	read := 0
	part, f := View{Offset: 90_000, Limit: 2, MaxChars: 1000}.OfLarge("t1.c1", l, kept(l, texts, &read))
	if want := `{"items":[{"n":90000,"of":"a list that is long"},{"n":90001,"of":"a list that is long"}],"next_offset":90002,"of":200000,"offset":90000}`; f != nil || string(jsonvalue.Canonical(part)) != want || read > 2 {
		t.Errorf("%s %v, %d pieces read", jsonvalue.Canonical(part), f, read)
	}
	if part, f = (View{JQ: "length", MaxChars: 1000}).OfLarge("t1.c1", l, kept(l, texts, &read)); f != nil || string(jsonvalue.Canonical(part)) != `{"value":200000}` {
		t.Errorf("%v %v", part, f)
	}
	texts[3] = strings.Replace(texts[3], "long", "lang", 1)
	if _, f = (View{Offset: 90_000, MaxChars: 1000, Path: "."}).OfLarge("t1.c1", l, kept(l, texts, &read)); f == nil || f.Code != problem.BlobDamaged {
		t.Errorf("a damaged piece: %+v", f)
	}

	text := strings.Repeat("é\x01", 800_000) + "!" // as JSON it is four times as large
	l, texts = Split(text, DefaultMaxBytes)
	for i := range texts {
		if n := jsonvalue.Size(PieceStep("t1.c1", i, texts[i]).Body, 0); n > 2<<20 {
			t.Errorf("piece %d has %d bytes as a step", i, n)
		}
	}
	read = 0
	if part, f = (View{Offset: l.Chars - 1, MaxChars: 1000}).OfLarge("t1.c1", l, kept(l, texts, &read)); f != nil || part.(map[string]any)["text"] != "!" || read > 1 {
		t.Errorf("%v %v, %d pieces read", part, f, read)
	}
	many := make([]any, 900_000)
	for i := range many {
		many[i] = "a text each"
	}
	l, texts = Split(many, DefaultMaxBytes)
	if _, f = (View{JQ: "length", MaxChars: 1000}).OfLarge("t1.c1", l, kept(l, texts, &read)); f == nil || f.Code != ResultTooLargeForJQ {
		t.Errorf("jq over %d bytes: %+v", l.Bytes, f)
	}
	if part, f = (View{Path: ".[500000:500003]", JQ: "length", MaxChars: 1000}).OfLarge("t1.c1", l, kept(l, texts, &read)); f != nil || string(jsonvalue.Canonical(part)) != `{"value":3}` {
		t.Errorf("%v %v", part, f)
	}
}

// TestWhatIsBeyondIsToldOf: of a result that is too large its beginning is kept as a text, without half a character.
func TestWhatIsBeyondIsToldOf(t *testing.T) {
	t.Parallel()
	l, texts := Split([]any{strings.Repeat("é", 2<<20)}, 3<<20)
	if kept := strings.Join(texts, ""); !l.Truncated || l.Type != typeText || l.WholeBytes != 4<<20+4 || len(kept) != l.Bytes || l.Bytes > 3<<20 || l.Bytes < 3<<20-2 || !strings.HasPrefix(kept, `["é`) || strings.ContainsRune(kept, '\uFFFD') {
		t.Errorf("%+v", l)
	}
	read := 0
	part, f := View{MaxChars: 3}.OfLarge("t1.c1", l, kept(l, texts, &read))
	if m, _ := part.(map[string]any); f != nil || m["text"] != `["é` || m["truncated"] != true || m["whole_bytes"] != float64(4<<20+4) {
		t.Errorf("%v %v", part, f)
	}
}
