package config

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// The fields that name the key of a service (spec: cli-and-config, 9 and 11).
const (
	keyEnvMember = "apiKeyEnv"
	keyRefMember = "apiKeySecretRef"
)

// members is the JSON object in a variable.
type members struct {
	*jsonobject.Object
	variable string
	report   *jsonobject.Report
}

// members reads a variable that holds an object. The Object is nil if the variable is unset.
func (e Environment) members(variable string) (members, error) {
	values, err := e.object(variable)
	if err != nil || values == nil {
		return members{}, err
	}
	report := &jsonobject.Report{Code: problem.UsageError}
	return members{report.Object(values), variable, report}, nil
}

// mistakes returns how many were found so far.
func (m members) mistakes() int { return len(m.report.Findings) }

// err closes the object and returns an error with all its problems.
func (m members) err() error {
	m.Close()
	switch m.mistakes() {
	case 0:
		return nil
	case 1:
	default:
		e := problem.New(problem.UsageError, "invalid %s", m.variable)
		e.Findings = m.report.Findings
		return e
	}
	first := m.report.Findings[0]
	hint := first.Hint
	first.Hint = ""
	return problem.New(first.Code, "%s: %s", m.variable, jsonobject.Describe("", first)).WithHint("%s", hint)
}

// text reads a string, trimmed.
func text(v jsonobject.Value) string { return strings.TrimSpace(v.Text()) }

// texts reads a list of strings, trimmed.
func texts(v jsonobject.Value) []string {
	list := v.Texts()
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// milliseconds reads a number of milliseconds above 0 and at most a day.
func milliseconds(v jsonobject.Value) time.Duration {
	const day = float64(24 * time.Hour / time.Millisecond)
	ms, ok := v.Number(0, day)
	if ok && ms == 0 {
		v.Fail("range", "expected a number of milliseconds above 0")
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// bytes reads a whole number of bytes above 0.
func bytes(v jsonobject.Value) int64 {
	n, _ := v.Whole(1, 1<<40)
	return n
}

// readKey reads the two fields that can name a service's key as one secret reference, "" without both. The reference is
// resolved once, so that a missing secret is found at start and not at the first call. The value itself is not kept: it
// is read again at each call.
func readKey(o *jsonobject.Object, env Environment) string {
	name, reference := text(o.Get(keyEnvMember)), text(o.Get(keyRefMember))
	switch {
	case name != "" && reference != "":
		o.Fail("oneOf", "%s", oneKey)
		return ""
	case name != "":
		reference = "env:" + name
	}
	if reference == "" {
		return ""
	}
	if _, err := env.secret(reference); err != nil {
		f := o.Fail("profile", "%v", err)
		if p, ok := problem.As(err); ok {
			f.Hint = p.Hint
		}
	}
	return reference
}

const oneKey = "expected exactly one of " + keyEnvMember + " and " + keyRefMember + ", or noAuth"
