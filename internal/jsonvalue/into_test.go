package jsonvalue_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type inner struct {
	Amount float64 `json:"amount"`
}

type embedded struct {
	Kept string `json:"kept"`
}

type custom struct{ text string }

func (c *custom) UnmarshalJSON(b []byte) error { c.text = string(b); return nil }

type outer struct {
	embedded
	Name   string           `json:"name"`
	Plain  int              // without a tag
	List   []inner          `json:"list"`
	ByName map[string]inner `json:"by_name"`
	Next   *outer           `json:"next,omitempty"`
	At     time.Time        `json:"at"`
	Own    custom           `json:"own"`
	Any    any              `json:"any"`
	Hidden string           `json:"-"`
}

// TestInto holds that a member fills the field of its name and no other, at every depth, and all else is as encoding/json has it.
func TestInto(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]outer{
		`{"name":"a","Plain":3,"kept":"k","unknown":{"Name":"b"}}`: {Name: "a", Plain: 3, embedded: embedded{Kept: "k"}},
		`{"plain":3}`:           {Plain: 3},
		`{"plain":3,"Plain":4}`: {Plain: 4},
		`{"NAME":"a","Name":"b","plain":3,"PLAIN":4,"KEPT":"k","hidden":"h","Hidden":"h"}`: {},
		`{"name":"a","NAME":"b","ſ":1,"Kept":"k"}`:                                         {Name: "a"},
		`{"list":[{"amount":1},{"AMOUNT":2},{"amount":3,"Amount":4}]}`:                     {List: []inner{{1}, {}, {3}}},
		`{"by_name":{"Amount":{"amount":1},"b":{"aMount":2}}}`:                             {ByName: map[string]inner{"Amount": {1}, "b": {}}},
		`{"next":{"name":"n","next":{"NAME":"x"}}}`:                                        {Next: &outer{Name: "n", Next: &outer{}}},
		`{"at":"2026-01-02T03:04:05Z","own":{"Name":1}}`:                                   {At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Own: custom{`{"Name":1}`}},
		`{"any":{"Name":"kept as it is","n":1}}`:                                           {Any: map[string]any{"Name": "kept as it is", "n": json.Number("1")}},
		"{\"\u212aept\":\"the sign for Kelvin\",\"name\":\"a\"}":                           {Name: "a"},
	} {
		v, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, `"any"`) { // the numbers of plain values are doubles
			var plain outer
			err := jsonvalue.IntoPlain(v, &plain)
			if n := plain.Any.(map[string]any)["n"]; err != nil || n != 1.0 {
				t.Errorf("%s: got %v, %v", text, n, err)
			}
		}
		before := string(jsonvalue.Canonical(v))
		var got outer
		if err := jsonvalue.Into(v, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if after := string(jsonvalue.Canonical(v)); after != before {
			t.Errorf("%s: the value was changed to %s", text, after)
		}
	}
	var n struct{ N int }
	if err := jsonvalue.Into(map[string]any{"N": "text"}, &n); err == nil {
		t.Error("a value of another type is taken")
	}
}
