package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// personWaitMS is the wait_ms that next suggests while the person is asked: hosts cut calls off after a minute.
const personWaitMS = 50_000

// said returns the headline's sentence about the questions of a run; "" without one.
func (k *asking) said(run *view.Run) string {
	if k == nil {
		return ""
	}
	text := ""
	if k.second != "" {
		text = " " + k.second
	}
	for i := range run.Pending {
		if end, _ := k.state(&run.Pending[i]); end.State != "" {
			return text + " " + ended(end)
		}
	}
	return text
}

// notOpen reports a person's answer to a form whose question has ended without one.
const notOpen = "The person's answer was rejected: the question was no longer open. Tell them so."

// answeredBefore reports a person's answer to a question that was answered elsewhere, with the first
// answer if it is known.
func answeredBefore(first map[string]any) string {
	as := ""
	if first != nil {
		as = ": " + problem.Excerpt(string(jsonvalue.Canonical(history.RedactValue(first))), maxFirstAnswer)
	}
	return "The person's answer was rejected: the question has a different answer, which is kept" + as + ". Tell them so."
}

// maxFirstAnswer limits the shown first answer, in bytes.
const maxFirstAnswer = 300

// firstAnswer returns the answer recorded before the rejected one, nil if the error does not contain it.
func firstAnswer(refused error) map[string]any {
	e, ok := problem.As(refused)
	if !ok {
		return nil
	}
	recorded, _ := e.Details["recorded"].(map[string]any)
	payload, _ := recorded["payload"].(map[string]any)
	return payload
}

// ended describes the end of a question.
func ended(end elicit.End) string {
	why := ""
	if end.Err != nil {
		why = ": " + problem.Excerpt(end.Err.Error(), 500)
	}
	switch end.State {
	case elicit.Asking:
		return "The host is asking the person, who has not answered yet."
	case elicit.Declined:
		return "The host reports that the person declined to answer."
	case elicit.Closed:
		return "The host reports that the person closed the question without an answer."
	case elicit.Unfit:
		return "The host asked the person, whose answers were invalid" + why + "."
	default:
		return "The host could not ask the person" + why + "."
	}
}

// isOpen reports whether the host is asking the person for the answer to an interrupt.
func (k *asking) isOpen(p *view.Pending) bool {
	end, _ := k.state(p)
	return end.State == elicit.Asking
}

// anyOpen reports whether the host is asking the person about an interrupt of a run.
func (k *asking) anyOpen(run *view.Run) bool {
	return slices.ContainsFunc(run.Pending, func(p view.Pending) bool { return k.isOpen(&p) })
}

// whilePersonIsAsked returns the call for a run whose person is being asked.
func whilePersonIsAsked(run *view.Run) toolCall {
	return call("workflow_status", members{{"execution_id", run.ExecutionID}, {"wait_ms", float64(personWaitMS)}},
		"The host is asking the person: do not answer for them. This call waits for the answer; then the run continues. "+
			"If it takes long, tell the user that the run waits for them, and stop.")
}

// answerCall returns the call that answers an interrupt while no form is open. args name run and interrupt; more is
// appended to the note.
func (k *asking) answerCall(args members, run *view.Run, p *view.Pending, more string) toolCall {
	end, again := k.state(p)
	required := k != nil && k.s.opts.Elicit == elicit.Required
	before := ""
	if end.State != "" {
		before = ended(end) + " "
	}
	switch {
	case k != nil && k.cards && end.State == "" && (k.able || !required) && k.s.cardTools.has("workflow_card_answer"):
		note := "Show the person the question, unless its card is in this conversation already: they answer there."
		if !required {
			note += " If they have told you their answer, call workflow_resume."
		}
		return call("workflow_show", members{{"execution_id", run.ExecutionID}}, note+more)
	case again && (end.State == elicit.Declined || end.State == elicit.Closed):
		note := "Do not answer for them: tell the user about the open question, and stop. When they want to answer, this call has the host ask again"
		if !required {
			note += "; or put their answer into resume_payload"
		}
		return call("workflow_resume", args, before+note+"."+more)
	case again && end.State == "" && required:
		return call("workflow_resume", args, "Only a person may answer: this call, without resume_payload, has the host ask them."+more)
	case again && end.State == "":
		return call("workflow_resume", args, "This call has the host ask the person. Only if they have told you their answer already, put it into resume_payload."+more)
	case required:
		return call("workflow_status", members{{"execution_id", run.ExecutionID}}, before+"Only a person may answer, and not through this host. "+
			k.atTerminal(run.ExecutionID, p)+". Then make this call."+more)
	}
	args.Put("resume_payload", blankAnswer(p))
	if calls := agentsteps.Approval(p.Show); calls != nil {
		return call("workflow_resume", args, before+"Show the person tool_calls with their arguments and put their decision into resume_payload"+decisionsNote(calls)+more)
	}
	return call("workflow_resume", args, before+"Ask the person what prompt says"+besides(p)+" and put their answer into resume_payload."+more)
}

// atTerminal returns the instruction to have the person answer at a terminal. p is nil if the interrupt is not known.
func (k *asking) atTerminal(executionID string, p *view.Pending) string {
	flags := slices.Clone(k.s.opts.StoreFlags)
	if p != nil && p.Kind == machine.WaitInterrupt {
		flags = append(flags, "--interrupt", p.ID)
	}
	return fmt.Sprintf("Tell the user to answer at a terminal, with the command `%s`", shellword.Command([]string{"workflows-engine", "resume"}, []string{executionID}, flags...))
}

// personRequired returns the error for an answer that a model passes on.
func (k *asking) personRequired(executionID string) error {
	e := problem.New(problem.PersonRequired, "this server accepts a person's answer only from a host that asks them").
		WithPlace(problem.Place{ExecutionID: executionID})
	if !k.able {
		return e.WithHint("This host cannot ask people (MCP elicitation). %s.", k.atTerminal(executionID, nil))
	}
	return e.WithHint("Call workflow_resume without resume_payload: the host then asks the person.")
}

// cannotAsk returns the error for an interrupt that the host cannot put to the person.
func (k *asking) cannotAsk(a *arguments, run *view.Run, p *view.Pending) error {
	why := "this host cannot ask people (MCP elicitation)"
	if end, _ := k.state(p); end.State != "" {
		why = fmt.Sprintf("the person was asked %d times", elicit.MaxTimes)
	} else if k.able {
		why = "its resume_schema cannot be shown as a form"
	}
	if k.s.opts.Elicit == elicit.Required {
		return problem.New(problem.PersonRequired, "the person cannot be asked: %s", why).WithPlace(problem.Place{ExecutionID: run.ExecutionID, NodeID: p.NodeID}).
			WithHint("%s.", k.atTerminal(run.ExecutionID, p))
	}
	a.Missing("resume_payload").Hint = why + ": ask them what prompt says" + besides(p) + " and send their answer"
	return a.Problem()
}

// questionText returns the text of a form: the question and the values shown with it.
func questionText(p *view.Pending) string {
	calls := agentsteps.Approval(p.Show)
	switch {
	case agentsteps.AsksPerson(p.Show):
		return p.Prompt
	case calls == nil:
		return withoutSecrets(p).Question()
	}
	text := p.Prompt
	for _, c := range calls {
		arguments, err := json.MarshalIndent(c.Arguments, "", "  ")
		if err != nil {
			arguments = jsonvalue.Canonical(c.Arguments)
		}
		if text += "\n\n" + c.Tool + " " + string(arguments); c.MayHaveHappened {
			text += "\nIt may have run already: a process died during the call."
		}
	}
	return text
}

// withoutSecrets returns an entry whose state has no values that look like secrets: its author did not choose to show
// it.
func withoutSecrets(p *view.Pending) *view.Pending {
	shown := *p
	shown.State, _ = history.DefaultRedaction().Value(p.State).(map[string]any)
	return &shown
}

// maxShownText is the approximate size, in bytes, of the state shown with a question.
const maxShownText = 1500

// shownText returns the state that a person needs for a question without `show`, in about most bytes; "" for other
// questions. An author's choice is the entry's field show.
func shownText(p *view.Pending, most int) string {
	if p.Kind != machine.WaitInterrupt || p.Show != nil {
		return ""
	}
	return withoutSecrets(p).Shown(min(most, maxShownText))
}

// decisionsNote explains the decisions about an agent's calls.
func decisionsNote(calls []agentsteps.Ask) string {
	note := `: {"decision":"approve"}, or "deny" or "stop" with reason, "edit" with arguments, "respond" with result; digest of the call binds it.`
	if len(calls) > 1 {
		note += ` One decision is for all calls; {"calls":{"KEY":{"decision":…}}} decides each.`
	}
	return note
}

// besides returns the values shown to a person with the prompt.
func besides(p *view.Pending) string {
	switch {
	case agentsteps.AsksPerson(p.Show) || p.Shown(1) == "":
		return ""
	case p.Show == nil:
		return ", with the text of shown,"
	}
	return ", with the values of show,"
}

// maxCalls limits the shown calls that an agent wants approved.
const maxCalls = 16

// shownCalls returns the calls that an agent wants approved, in about room bytes: tool and digest of each, and as much
// of its arguments as fits. whole reports that nothing is missing.
func (s *server) shownCalls(p *view.Pending, room int) (list []members, whole bool) {
	calls := agentsteps.Approval(p.Show)
	whole = len(calls) <= maxCalls
	calls = calls[:min(len(calls), maxCalls)]
	in, left := s.waitDocument(p), room
	for i, c := range calls {
		m := members{{"key", c.Key}, {"tool", c.Tool}, {"digest", c.Digest}}
		if c.MayHaveHappened {
			m.Put("may_have_happened", true)
		}
		share := max((left-len(m.Append(nil))*(len(calls)-i))/(len(calls)-i), outline.MinBytes)
		text, all := in.Show(map[string]any(c.Arguments), share, fmt.Sprintf("/tool_calls/%d/arguments", i))
		m.Put("arguments", text)
		left -= len(m.Append(nil)) + len(",")
		list, whole = append(list, m), whole && all
	}
	return list, whole
}

// putCalls replaces the calls in an entry by those of shownCalls.
func (s *server) putCalls(entry *members, p *view.Pending, room int) (whole bool) {
	i := indexOf(*entry, "tool_calls")
	if i < 0 {
		return true
	}
	list, whole := s.shownCalls(p, room)
	(*entry)[i].Value = list
	if n := len(agentsteps.Approval(p.Show)); n > len(list) {
		entry.Put("tool_calls_total", float64(n))
	}
	return whole
}
