package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// registerContinue adds the flags of all commands that drive a stored run.
func registerContinue(set *pflag.FlagSet, o *driveOptions, folder *string) {
	config.RegisterWorkflowDir(set, folder, "none")
	set.StringVar(&o.definition, flagDefinition, "", "`file` of the run's definition, if it is not stored or must be signed")
	registerDrive(set, o)
}

// registerDrive adds the flags of all commands that drive a run.
func registerDrive(set *pflag.FlagSet, o *driveOptions) {
	o.answers.register(set)
	set.StringVar(&o.mode, flagMode, "", "who performs activities: in_process (what is configured here) or host_mediated (whoever submits)")
	registerWait(set, &o.wait)
	set.BoolVar(&o.json, "json", false, "print where the run stands as JSON, instead of its result alone")
	registerStream(set, o)
}

// registerStream adds the flag that keeps the words of models from being printed as they arrive.
func registerStream(set *pflag.FlagSet, o *driveOptions) {
	set.BoolVar(&o.noStream, "no-stream", false, "on a terminal, do not print what models of agents say as it arrives")
}

// registerWait adds the flag that bounds how long a command waits for a run. Without the flag the limit stays nil.
func registerWait(set *pflag.FlagSet, limit **time.Duration) {
	help := "give up waiting after this `time`, as in 30s, and leave the run to recover; 0 for not waiting at all (default: no limit)"
	set.Func("wait", help, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("write a time with its unit, as in 500ms, 30s or 2m, or 0 for not waiting")
		}
		*limit = &d
		return nil
	})
}

// continued opens a session, makes one call that continues a run, and drives the run on. answers says that the call brings something that
// the run waits for.
func (a *app) continued(
	ctx context.Context, id, folder string, o driveOptions, answers bool, call func(*session, graph.Caller) (*view.Run, error),
) error {
	caller, err := a.caller(o)
	if err != nil {
		return err
	}
	return a.with(ctx, sessionOptions{display: showTree, drives: true, shown: id, folder: folder}, func(s *session) error {
		if o.definition != "" {
			s.repeat = append(s.repeat, "--"+flagDefinition, o.definition)
		}
		d := a.drive(s, o)
		d.caller.Mode, d.caller.Definition = caller.Mode, caller.Definition
		stored, err := s.store.Execution(ctx, id)
		if err != nil {
			return err // before the call, which may have another code for it
		}
		if before, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err == nil { // the call has the same error
			// A subworkflow whose parent was cancelled may end already while its status is read.
			d.cancelling = before.Status == machine.Cancelled && !stored.Phase.Terminal() ||
				slices.ContainsFunc(before.Rollbacks, func(p machine.RollbackProgress) bool { return p.Reason == machine.RollbackCancel })
		}
		run, err := call(s, d.caller)
		if err == nil && answers {
			d.taken(run)
		}
		return explainDefinition(d.from(ctx, run, err))
	})
}

// caller reads what the flags say about the run, before anything is changed.
func (a *app) caller(o driveOptions) (caller graph.Caller, err error) {
	if caller.Mode, err = parseMode(o.mode); err != nil {
		return caller, err
	}
	if caller.Definition, err = a.readDefinition(o.definition); err != nil {
		return caller, err
	}
	return caller, o.answers.read(a)
}

const (
	flagDefinition = "definition"
	flagMode       = "mode"
	// flagAgentConfig is a flag of retry, with its values.
	flagAgentConfig = "agent-config"
	configRecorded  = "recorded"
	configCurrent   = "current"
)

func parseMode(text string) (machine.Mode, error) {
	switch mode := machine.Mode(text); mode {
	case "", machine.InProcess, machine.HostMediated:
		return mode, nil
	}
	return "", usage("--mode: %q is not understood", text).
		WithHint("Write %s or %s.", machine.InProcess, machine.HostMediated)
}
