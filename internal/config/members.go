package config

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The members by which a service's key is named (spec: cli-and-config, 9 and 11).
const (
	keyEnvMember = "apiKeyEnv"
	keyRefMember = "apiKeySecretRef"
)

// members is a JSON object that a variable gave, with the variable's name for refusals.
type members struct {
	variable string
	values   map[string]any
}

// members reads a variable that holds an object with no members but those. A nil values means that it is unset.
func (e Environment) members(variable string, known ...string) (members, error) {
	values, err := e.object(variable)
	if err != nil {
		return members{}, err
	}
	return members{variable, values}.only(known...)
}

// only refuses members that are not known.
func (m members) only(known ...string) (members, error) {
	for _, name := range jsonvalue.Keys(m.values) {
		if !slices.Contains(known, name) {
			return members{}, problem.New(problem.UsageError, "%s: member %q is not known", m.variable, name).
				WithHint("The members are %s.", strings.Join(known, ", "))
		}
	}
	return m, nil
}

// text gives a member that is a string, trimmed; "" if it is absent.
func (m members) text(name string) (string, error) {
	value, present := m.values[name]
	text, ok := value.(string)
	if present && !ok {
		return "", problem.New(problem.UsageError, "%s: member %q must be a string", m.variable, name)
	}
	return strings.TrimSpace(text), nil
}

// texts gives a member that is a list of strings, trimmed; nil if it is absent.
func (m members) texts(name string) ([]string, error) {
	value, present := m.values[name]
	list, ok := value.([]any)
	var texts []string
	for _, element := range list {
		text, isText := element.(string)
		ok = ok && isText
		texts = append(texts, strings.TrimSpace(text))
	}
	if present && !ok {
		return nil, problem.New(problem.UsageError, "%s: member %q must be a list of strings", m.variable, name)
	}
	return texts, nil
}

// truth gives a member that is true or false; false if it is absent.
func (m members) truth(name string) (bool, error) {
	value, present := m.values[name]
	truth, ok := value.(bool)
	if present && !ok {
		return false, problem.New(problem.UsageError, "%s: member %q must be true or false", m.variable, name)
	}
	return truth, nil
}

// milliseconds gives a member that is a number of milliseconds above zero, 0 if it is absent.
func (m members) milliseconds(name string) (time.Duration, error) {
	value, present := m.values[name]
	ms, ok := value.(float64)
	const day = float64(24 * time.Hour / time.Millisecond)
	if present && (!ok || ms <= 0 || ms > day) {
		return 0, problem.New(problem.UsageError, "%s: member %q must be a number of milliseconds, above 0 and at most a day",
			m.variable, name)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// bytes gives a member that is a whole number of bytes above zero, 0 if it is absent.
func (m members) bytes(name string) (int64, error) {
	value, present := m.values[name]
	n, ok := value.(float64)
	const most = 1 << 40
	if present && (!ok || n < 1 || n > most || n != float64(int64(n))) {
		return 0, problem.New(problem.UsageError, "%s: member %q must be a whole number of bytes above 0", m.variable, name)
	}
	return int64(n), nil
}

// keyReference turns the two ways of naming a key into one secret reference; "" if neither is there.
func (m members) keyReference() (string, error) {
	name, err := m.text(keyEnvMember)
	if err != nil {
		return "", err
	}
	reference, err := m.text(keyRefMember)
	if err != nil {
		return "", err
	}
	if name != "" && reference != "" {
		return "", m.oneKey()
	}
	if name != "" {
		return "env:" + name, nil
	}
	return reference, nil
}

// secret resolves the reference to a key for the first time. Who reads the refusal did not write the reference in this call,
// so that it names the setting that holds it.
func (m members) secret(env Environment, reference string) error {
	_, err := env.secret(reference)
	if err == nil {
		return nil
	}
	refusal := problem.New(problem.UsageError, "%s", m.variable).WithCause(err)
	if p, ok := problem.As(err); ok {
		refusal.Hint = p.Hint
	}
	return refusal
}

func (m members) oneKey() error {
	return problem.New(problem.UsageError, "%s needs exactly one of %s and %s, or noAuth", m.variable, keyEnvMember, keyRefMember)
}
