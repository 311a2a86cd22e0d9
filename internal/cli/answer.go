package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// answer is what a script gives a run that waits: a payload for an interrupt, or a signal.
type answer struct {
	signal  string         // "" for an interrupt
	payload string         // as written on the command line
	object  map[string]any // the payload, once read
}

// answers collects --resume and --signal flags in the order in which they were written.
type answers []answer

// register adds the two flags to a set.
func (as *answers) register(set *pflag.FlagSet) {
	set.Func("resume", "answer the next interrupt with this `JSON` object (repeatable, used in order)", func(text string) error {
		*as = append(*as, answer{payload: text})
		return nil
	})
	set.Func("signal", "deliver a signal when the run waits, as `NAME=JSON` (repeatable, used in order)", func(text string) error {
		name, payload, _ := strings.Cut(text, "=")
		if strings.TrimSpace(name) == "" {
			return usage(`a signal needs a name, as in approved={"by":"kim"}`)
		}
		*as = append(*as, answer{signal: name, payload: payload})
		return nil
	})
}

// take removes the first answer.
func (as *answers) take() (first answer, ok bool) {
	if len(*as) == 0 {
		return answer{}, false
	}
	first, *as = (*as)[0], (*as)[1:]
	return first, true
}

// read reads every payload, so that a typing error is reported before the run begins.
func (as answers) read(a *app) (err error) {
	for i := range as {
		flag := "--resume"
		if as[i].signal != "" {
			flag = "--signal " + as[i].signal
		}
		if as[i].object, err = a.readObject(flag, as[i].payload); err != nil {
			return err
		}
	}
	return nil
}

// awaited refuses signals that a definition never waits for. A subworkflow may wait for any.
func (as answers) awaited(program *definition.Program) error {
	var names []string
	for _, n := range program.Nodes {
		if n.Subworkflow != nil {
			return nil
		}
		if n.Wait != nil && n.Wait.Signal != "" {
			names = append(names, n.Wait.Signal)
		}
	}
	for _, answer := range as {
		switch {
		case answer.signal == "" || slices.Contains(names, answer.signal):
		case len(names) == 0:
			return usage("--signal: the definition waits for no signal, and so not for %q", answer.signal)
		default:
			return usage("--signal: the definition does not wait for a signal %q", answer.signal).
				WithHint("It waits for %s.", strings.Join(names, ", "))
		}
	}
	return nil
}
