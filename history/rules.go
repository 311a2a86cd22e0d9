package history

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// payloadMember is a payload field with its allowed values. A history may be forged.
type payloadMember struct {
	name  string
	field func(*Payload) any
	rule  rule
}

// rule is a range of values.
type rule struct {
	// want describes the range, after the word "expected".
	want string
	// fits reports whether a nonzero field is in the range. If it is nil, any value of the right form fits.
	fits func(a *Audit, r *Record, field any) bool
	// ours limits the rule to records of this engine, because other engines may write different values. incoming limits it to files, because
	// earlier releases may have stored different values.
	ours, incoming bool
}

// MemberRule describes a payload field.
type MemberRule struct {
	Name string
	// Want describes the allowed values.
	Want string
}

// MemberRules lists the payload fields in the order of writing.
func MemberRules() []MemberRule {
	var all []MemberRule
	for _, m := range payloadTable {
		all = append(all, MemberRule{m.name, m.rule.want})
	}
	return all
}

func checks[T any](want string, fits func(a *Audit, r *Record, v T) bool) rule {
	return rule{want: want, fits: func(a *Audit, r *Record, field any) bool { return fits(a, r, *field.(*T)) }}
}

func within(want string, most func(r *Record) int64) rule {
	return rule{want: want, fits: func(_ *Audit, r *Record, field any) bool {
		n := int64(0)
		switch f := field.(type) {
		case *int:
			n = int64(*f)
		case *int64:
			n = *f
		}
		return n >= 0 && n <= most(r)
	}}
}

var (
	// Values of a form.
	anyText, anyValue, list = rule{want: "a text"}, rule{want: "a value"}, rule{want: "a list of texts"}
	anyObject, flag         = rule{want: "an object"}, rule{want: "true or false"}
	whole                   = rule{want: "a whole number"}
	branch, stateReference  = rule{want: "the four names of a branch"}, rule{want: "a state"}
	textsByName, mismatched = rule{want: "an object of texts"}, rule{want: "two commands"}

	count = within("a whole number from 0", func(*Record) int64 { return math.MaxInt32 })
	ms    = within("a number of milliseconds from 0", func(*Record) int64 { return math.MaxInt64 })
	sofar = within("a whole number from 0 to the number of the record", func(r *Record) int64 { return r.Seq })

	moment = checks("a time of the years 1970 to 9000", func(_ *Audit, _ *Record, v time.Time) bool { return inRange(v) })
	later  = checks("a time not before the time of the record", func(_ *Audit, r *Record, v time.Time) bool {
		return inRange(v) && !v.Before(r.CreatedAt.Truncate(time.Millisecond))
	})
	title  = inFiles(checks(fmt.Sprintf("one line of at most %d characters", maxTitle), func(_ *Audit, _ *Record, v string) bool { return CheckCaption(v, nil) == nil }))
	labels = inFiles(checks(fmt.Sprintf("at most %d labels, each a short line", maxLabels), func(_ *Audit, _ *Record, v map[string]string) bool {
		return CheckCaption("", v) == nil
	}))
	targets = inFiles(checks(fmt.Sprintf("names of targets, lines of at most %d bytes", maxTarget), func(_ *Audit, _ *Record, v []string) bool {
		return !slices.ContainsFunc(v, func(name string) bool {
			return strings.TrimSpace(name) == "" || len(name) > maxTarget || strings.ContainsFunc(name, unicode.IsControl)
		})
	}))
	author = inFiles(checks("who made a call, in short lines", func(_ *Audit, _ *Record, v *Actor) bool {
		return v == nil || v.short()
	}))
	queueName   = inFiles(checks("the name of a queue", func(_ *Audit, _ *Record, v string) bool { return v == "" || IsQueueName(v) }))
	traceParent = inFiles(checks("a traceparent", func(_ *Audit, _ *Record, v string) bool { return v == "" || IsTraceParent(v) }))
	forkOrigin  = inFiles(checks("a run and one of its records", func(_ *Audit, _ *Record, v ForkOrigin) bool {
		return v == ForkOrigin{} || Seen(v.ExecutionID) && v.Seq >= 0
	}))
	ofFork       = checks("false, as the run is no fork", func(a *Audit, _ *Record, v bool) bool { return !v || a.Execution.ForkedFrom.ExecutionID != "" })
	countsByName = checks("an object of counts", func(_ *Audit, _ *Record, v map[string]int) bool {
		for _, n := range v {
			if n > math.MaxInt32 {
				return false
			}
		}
		return true
	})
	hashesByName = checks("an object of SHA-256 hashes", func(_ *Audit, _ *Record, v map[string]string) bool {
		for _, h := range v {
			if !hashForm.MatchString(h) {
				return false
			}
		}
		return true
	})

	hash = foreignToo(checks("a SHA-256 hash", func(_ *Audit, _ *Record, v string) bool { return v == "" || hashForm.MatchString(v) }))
)

// inFiles limits a rule for readable text to files.
func inFiles(r rule) rule {
	r.incoming = true
	return r
}

// foreignToo limits a rule to this engine's records.
func foreignToo(r rule) rule {
	r.ours = true
	return r
}

func oneOf(values ...string) rule {
	return foreignToo(checks("one of "+strings.Join(values, ", "), func(_ *Audit, _ *Record, v string) bool {
		return v == "" || slices.Contains(values, v)
	}))
}

// maxTarget is the maximum length of a target's name in bytes, as in the list of targets.
const maxTarget = 128

var (
	hashForm        = regexp.MustCompile(`^[0-9a-f]{64}$`)
	traceParentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// IsTraceParent reports whether a text has the form of a traceparent header (W3C Trace Context).
func IsTraceParent(text string) bool { return traceParentForm.MatchString(text) }

func inRange(t time.Time) bool { year := t.UTC().Year(); return year >= 1970 && year <= 9000 }

// misfit returns the first field of a record with an impossible value, the value, and a description of the allowed values. name is "" if all
// values are possible.
func (a *Audit) misfit(r *Record) (name, found, want string) {
	over := r.Payload.over
	for i := range payloadTable {
		m := &payloadTable[i]
		if over != nil && over.member == i && !r.Foreign {
			return m.name, shown(jsonvalue.Canonical(over.value)), m.rule.want
		}
		if m.rule.fits == nil || m.rule.ours && r.Foreign || m.rule.incoming && !a.Incoming {
			continue
		}
		if field := m.field(&r.Payload); !isZero(field) && !m.rule.fits(a, r, field) {
			return m.name, shown(written(field)), m.rule.want
		}
	}
	return "", "", ""
}

// passedOver is a value that reading ignored, at least in part.
type passedOver struct {
	// member is the field's index in payloadTable.
	member int
	value  any
}

// isWhole reports whether a field holds all of the value that it was set to.
func isWhole(field, v any) bool {
	switch f := field.(type) {
	case *Optional:
		return true
	case *string:
		_, ok := v.(string)
		return ok
	case *bool:
		_, ok := v.(bool)
		return ok
	case *int:
		return v == float64(*f)
	case *int64:
		return v == float64(*f)
	case *time.Time:
		return !f.IsZero() && v == FormatTimestamp(*f)
	case *[]string:
		return *f != nil
	case *map[string]any:
		return *f != nil
	case *stateRef:
		return *f != nil && len(object(v)) == 2
	case **ParallelSpan:
		return *f != nil && len(object(v)) == 4
	}
	text := written(field)
	if len(text) == 0 {
		m, ok := v.(map[string]any)
		return ok && len(m) == 0
	}
	again, err := jsonvalue.Decode(text)
	return err == nil && jsonvalue.Equal(v, again)
}

// written returns a field's value in its stored form.
func written(field any) []byte {
	w := objectWriter{buf: []byte("{")}
	w.member("", field, false)
	return bytes.TrimPrefix(w.buf[1:], []byte(`"":`))
}

// isZero reports whether a field of a simple type is zero.
func isZero(field any) bool {
	switch f := field.(type) {
	case *string:
		return *f == ""
	case *int:
		return *f == 0
	case *int64:
		return *f == 0
	case *bool:
		return !*f
	case *time.Time:
		return f.IsZero()
	case *map[string]string:
		return len(*f) == 0
	}
	return false
}

// maxFound is the maximum length of the value in a finding, in bytes.
const maxFound = 80

// shown returns a JSON text in readable form: short, and without invisible characters.
func shown(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if r != ' ' && !unicode.IsPrint(r) || r == utf8.RuneError {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
		if b.Len() > maxFound {
			break
		}
	}
	return problem.Clip(b.String(), maxFound)
}
