package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// misfits are, for each range of values, some that are not in it.
var misfits = map[string][]any{
	"a text":                          {1, true, nil, []any{}, obj{"a": "b"}},
	"a value":                         {},
	"a list of texts":                 {"x", 1, nil, []any{1}, []any{"a", nil}},
	"an object":                       {"x", 1, nil, []any{}},
	"true or false":                   {"true", 1, nil},
	"a whole number":                  {1.5, "1", nil, true},
	"a whole number from 0":           {-1, 1.5, 1 << 53, "1", nil, true},
	"a number of milliseconds from 0": {-1, 1.5, "1", nil, true},
	"a whole number from 0 to the number of the record": {-1, 1.5, 1 << 40, "1", nil},
	"the four names of a branch":                        {"x", nil, obj{}, obj{"parallelNodeId": "p", "joinTargetId": "j", "branchName": "b", "branchEntryNodeId": 1}},
	"a state":                                           {"x", nil, obj{"kind": "blob", "state": obj{}}, obj{"kind": "inline_state", "state": obj{}, "more": 1}},
	"an object of texts":                                {"x", nil, obj{"a": 1}},
	"two commands":                                      {"x", nil, obj{"expected": obj{"seq": "1"}}},
	"an object of counts":                               {"x", nil, obj{"a": -1}, obj{"a": "1"}, obj{"a": 1 << 40}},
	"an object of SHA-256 hashes":                       {"x", nil, obj{"a": "b"}, obj{"a": 1}},
	"a SHA-256 hash":                                    {"x", 1, nil, strings.Repeat("F", 64), strings.Repeat("f", 65)},
	"a time of the years 1970 to 9000":                  {"soon", 5, nil, "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2026-11-21T03:03:46.919+02:00"},
	"a time not before the time of the record":          {"soon", 5, nil, "1999-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"},
	"one line of at most 200 characters":                {"\x1b[2J", "a\nb", "\u009b2J", "\u202egnp", "\u2028", strings.Repeat("x", 201), 1, nil},
	"at most 16 labels, each a short line":              {"x", nil, obj{"a": 1}, obj{"a": "\x1b[2J"}, obj{"\x1b": "a"}, obj{"": "a"}, obj{"a": strings.Repeat("x", 201)}},
	"names of targets, lines of at most 128 bytes":      {"x", nil, []any{""}, []any{"a\nb"}, []any{"\x1b[2J"}, []any{strings.Repeat("x", 129)}},
	"who made a call, in short lines":                   {"x", nil, obj{"name": "\x1b[2J"}, obj{"via": strings.Repeat("x", 65)}, obj{"name": 1}, obj{"more": "x"}},
	"a traceparent":                                     {"x", 1, nil},
	"the name of a queue":                               {"a/b", "a b", "\x1b[2J", strings.Repeat("x", 65), 1, nil},
	"a run and one of its records":                      {"x", nil, obj{"executionId": "\x1b[2J", "seq": 1}, obj{"executionId": "a", "seq": -1}},
	"one of concurrent, sequential":                     {"evil", 1, nil},
	"one of in_process, host_mediated":                  {"evil", 1, nil},
	"one of duration, until, deadline":                  {"evil", 1, nil},
	"false, as the run is no fork":                      {true, 1, nil},
}

// TestForgedMembersAreFound gives each member of records values that no engine records: an audit names the member, and prints no character
// that cannot be seen.
func TestForgedMembersAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range history.MemberRules() {
		bad, known := misfits[m.Want]
		if !known {
			t.Errorf("no values are known that %q is to refuse: %s", m.Name, m.Want)
		}
		for _, value := range bad {
			v, err := jsonvalue.Normalize(obj{m.Name: value})
			if err != nil {
				t.Fatal(err)
			}
			r := history.Record{Seq: 1, Kind: history.Event, Name: history.ExecutionStarted, CreatedAt: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Raw: jsonvalue.Canonical(v)}
			if r.Payload, err = history.DecodePayload(r.Name, r.Raw); err != nil {
				t.Fatal(err)
			}
			a := history.Audit{ExecutionID: "x", Incoming: true}
			a.Record(&r, nil)
			want := fmt.Sprintf(" as its %s, expected %s", m.Name, m.Want)
			if len(a.Findings) != 1 || a.Findings[0].Code != problem.RecordUnreadable || !strings.Contains(a.Findings[0].Message, want) || !history.Seen(a.Findings[0].Message) {
				t.Errorf("%#v as its %s: %+v", value, m.Name, a.Findings)
			}
		}
	}
}

// TestTextsOfEarlierReleasesAreNotCondemned: a store may hold texts for people that this release would not write; only a file is refused
// for them.
func TestTextsOfEarlierReleasesAreNotCondemned(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for member, value := range map[string]any{
		"title": long + "\n", "labels": obj{"a": long, "b=c": "\u202e"}, "notify": []any{long}, "traceParent": "00-1",
		"actor": obj{"name": long, "via": "\x1b[2J"}, "importedBy": obj{"title": long}, "forkedFrom": obj{"executionId": "a\u200bb", "seq": 3},
	} {
		for _, incoming := range []bool{false, true} {
			v, err := jsonvalue.Normalize(obj{member: value})
			if err != nil {
				t.Fatal(err)
			}
			r := history.Record{Seq: 1, Kind: history.Event, Name: history.ExecutionStarted, CreatedAt: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
			if r.Payload, err = history.DecodePayload(r.Name, jsonvalue.Canonical(v)); err != nil {
				t.Fatal(err)
			}
			a := history.Audit{ExecutionID: "x", Incoming: incoming}
			a.Record(&r, nil)
			if len(a.Findings) > 0 != incoming {
				t.Errorf("%s, incoming %t: %+v", member, incoming, a.Findings)
			}
		}
	}
}
