package runjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func TestChangesNameThePlaces(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ""},
		{"members", `{"a":1,"b":2,"c":3}`, `{"a":1,"b":5,"d":null}`, `/b=5 -/c /d=null`},
		{"inside", `{"o":{"x":1,"y":{"z":[1]}}}`, `{"o":{"x":1,"y":{"z":[1]},"n":{"m":2}}}`, `/o/n={"m":2}`},
		{"a list that grows", `{"log":["a","b"]}`, `{"log":["a","b","c",{"d":1}]}`, `/log/2="c" /log/3={"d":1}`},
		{"a list that shrinks", `{"log":[1,2,3,4]}`, `{"log":[1,2]}`, `-/log/2`},
		{"elements", `{"l":[{"n":1,"m":1},2,3]}`, `{"l":[{"n":9,"m":1},2,4]}`, `/l/0/n=9 /l/2=4`},
		{"names with slashes", `{"a/b":{"~":1,"x":1}}`, `{"a/b":{"~":2,"x":1}}`, `/a~1b/~0=2`},
		{"another kind", `{"a":{"b":1}}`, `{"a":[1]}`, `/a=[1]`},
		{"all of it", `{"a":1,"b":2}`, `{"c":3}`, `-/a -/b /c=3`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			decode := func(text string) map[string]any {
				v, err := jsonvalue.Decode([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				return v.(map[string]any)
			}
			var got []string
			for _, c := range runjson.Changes(decode(tt.before), decode(tt.after)) {
				if c.Gone {
					got = append(got, "-"+c.Pointer)
				} else {
					got = append(got, fmt.Sprintf("%s=%s", c.Pointer, jsonvalue.Canonical(c.Value)))
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}
