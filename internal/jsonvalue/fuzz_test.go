package jsonvalue_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzParse holds the two readers and the writer against each other, and against the standard library.
func FuzzParse(f *testing.F) {
	for _, row := range golden {
		f.Add([]byte(row.in))
	}
	for _, text := range []string{"", " ", "{", `{"a":`, "[1,]", "\uFEFF1", "\"\xff\"", `"\u12`, "1e999", "-0", "1 2", `{"a":1,"a":2}`, "[[[[]]]]", "nul"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, problems := jsonvalue.Parse(text, 100, 0)
		decoded, err := jsonvalue.Decode(text)
		fatal := false
		for _, p := range problems {
			switch p.Kind {
			case "syntax", "trailing":
				fatal = true
			case "depth":
				return // Decode follows further
			}
			if p.Line < 1 || p.Column < 1 || p.Offset < 0 || p.Offset > len(text) {
				t.Fatalf("a problem out of the text: %+v", p)
			}
		}
		if (err != nil) != fatal {
			t.Fatalf("Parse: %v, Decode: %v", problems, err)
		}
		if valid := json.Valid(bytes.TrimPrefix(text, []byte("\ufeff"))); valid != (err == nil) {
			t.Fatalf("valid for the standard library: %v, for Decode: %v", valid, err)
		}
		if n != nil && !fatal && !jsonvalue.Equal(n.Value(), decoded) {
			t.Fatalf("Parse reads %v, Decode %v", n.Value(), decoded)
		}
		if err != nil {
			return
		}
		canonical := jsonvalue.Canonical(decoded)
		if len(canonical) != jsonvalue.Size(decoded, 0) {
			t.Fatalf("size %d of %s", jsonvalue.Size(decoded, 0), canonical)
		}
		again, problems := jsonvalue.Parse(canonical, 10_000, 0)
		for _, p := range problems {
			if p.Kind != "proto" {
				t.Fatalf("Parse refuses canonical text %s: %v", canonical, p)
			}
		}
		if !bytes.Equal(jsonvalue.Canonical(again.Value()), canonical) {
			t.Fatalf("not canonical: %s", canonical)
		}
		if normal, err := jsonvalue.Normalize(decoded); err != nil || !jsonvalue.Equal(normal, decoded) {
			t.Fatalf("Normalize changes %s: %v", canonical, err)
		}
	})
}

// TestNumberText holds the number format against its definition: the shortest digits that read as the same double.
func TestNumberText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		f := math.Float64frombits(random.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := string(jsonvalue.Canonical(f))
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != f {
			t.Fatalf("%v is written %s", f, text)
		}
		if standard, _ := json.Marshal(f); text != string(standard) {
			t.Fatalf("%s, the standard library writes %s", text, standard)
		}
	}
	for _, f := range []float64{1e-7, 1.5e-9, 1e21, 123e25, 999999999999999999999, 1e20, -1e20, 4.35, 1 << 53, -(1 << 53), 1<<53 + 2} {
		text := string(jsonvalue.Canonical(f))
		if standard, _ := json.Marshal(f); text != string(standard) {
			t.Errorf("%s, the standard library writes %s", text, standard)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if text := string(jsonvalue.Canonical(f)); text != "null" {
			t.Errorf("%v is written %s", f, text)
		}
	}
	if text := string(jsonvalue.Canonical(math.Copysign(0, -1))); text != "0" {
		t.Error(text)
	}
}

func TestDecodeDepth(t *testing.T) {
	t.Parallel()
	deep := append(bytes.Repeat([]byte{'['}, 10_000), bytes.Repeat([]byte{']'}, 10_000)...)
	if _, err := jsonvalue.Decode(deep); err != nil {
		t.Error(err)
	}
	if _, err := jsonvalue.Decode(bytes.Repeat([]byte{'['}, 10_001)); err == nil {
		t.Error("10,001 levels were read")
	}
}

// TestDecodeAfterFailure: what a failed call leaves behind does not get into the next value.
func TestDecodeAfterFailure(t *testing.T) {
	t.Parallel()
	for range 10 {
		if _, err := jsonvalue.Decode([]byte(`{"a":[1,2,{"b":3,`)); err == nil {
			t.Fatal("an open text was read")
		}
		v, err := jsonvalue.Decode([]byte(`{"x":[5,{"y":6}]}`))
		if err != nil || string(jsonvalue.Canonical(v)) != `{"x":[5,{"y":6}]}` {
			t.Fatalf("%v, %v", v, err)
		}
	}
}
