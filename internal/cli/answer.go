package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// answer is what a script gives a run that waits: a payload for an interrupt, or a signal.
type answer struct {
	signal  string // "" for an interrupt
	payload string // as written on the command line
}

// answers collects --resume and --signal flags in the order in which they were written.
type answers []answer

// register adds the two flags to a set.
func (as *answers) register(set *pflag.FlagSet) {
	set.Var(resumeValue{as}, "resume", "answer the next interrupt with this `JSON` object (repeatable, used in order)")
	set.Var(signalValue{as}, "signal", "deliver a signal when the run waits, as `NAME=JSON` (repeatable, used in order)")
}

// take removes the first answer.
func (as *answers) take() (first answer, ok bool) {
	if len(*as) == 0 {
		return answer{}, false
	}
	first, *as = (*as)[0], (*as)[1:]
	return first, true
}

type resumeValue struct{ list *answers }

func (v resumeValue) Set(s string) error { *v.list = append(*v.list, answer{payload: s}); return nil }
func (resumeValue) String() string       { return "" }
func (resumeValue) Type() string         { return "JSON" }

type signalValue struct{ list *answers }

func (v signalValue) Set(s string) error {
	name, payload, _ := strings.Cut(s, "=")
	if strings.TrimSpace(name) == "" {
		return usage(`a signal needs a name, as in approved={"by":"kim"}`)
	}
	*v.list = append(*v.list, answer{signal: name, payload: payload})
	return nil
}
func (signalValue) String() string { return "" }
func (signalValue) Type() string   { return "NAME=JSON" }
