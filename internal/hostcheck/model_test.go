package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"sync"
)

// model is a scripted model: it starts one workflow and then makes the call that the newest tool result names. It reads a result as a
// model does, from the structured content or the text, whichever the host passes on.
type model struct {
	start object // arguments of workflow_start
	// outcomes holds the results to submit for a node, in order; the last one is repeated.
	outcomes map[string][]object
	// answer is what the model answers a question with. It answers each open question once, even if the server tells it to leave the
	// question to a person; nil: it leaves questions alone.
	answer object

	mu         sync.Mutex
	answered   bool
	submitted  map[string]int
	last       *turn
	transcript []said
}

type object = map[string]any

// said is a line of the transcript: what the model sees, calls or says.
type said struct {
	verb, text string // of a call, the tool
	args       object
}

// noTools is what the model says while its host offers no tools of the server.
const noTools = "No tools yet"

// turn is what the model says: a tool to call, or a text that ends the conversation.
type turn struct {
	tool string // as the host names it
	args object
	text string
}

// nextLine is how a text result names the next call.
var nextLine = regexp.MustCompile(`(?m)^Next: (workflow_\w+) (\{.*\})$`)

// runID finds the run that a result is about.
var runID = regexp.MustCompile(`"execution_id": ?"([^"]+)"`)

// nextCall returns the call that a tool result names, false if it names none.
func nextCall(result string) (tool string, args object, ok bool) {
	if found := nextLine.FindStringSubmatch(result); found != nil && json.Unmarshal([]byte(found[2]), &args) == nil {
		return found[1], args, true
	}
	var answer struct {
		Next struct {
			Tool      string
			Arguments object
		}
	}
	// A host may put lines before the JSON text.
	at := strings.Index(result, "{")
	if at < 0 || json.NewDecoder(strings.NewReader(result[at:])).Decode(&answer) != nil || answer.Next.Tool == "" {
		return "", nil, false
	}
	return answer.Next.Tool, answer.Next.Arguments, true
}

// say answers a request that offers tools and carries the results of earlier calls.
func (m *model) say(tools, results []string) turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	named := func(tool string) string {
		for _, offered := range tools {
			if strings.HasSuffix(offered, tool) {
				return offered
			}
		}
		return ""
	}
	if named("workflow_start") == "" {
		return turn{text: noTools} // or a side request of the host, such as one for a title
	}
	if len(results) == 0 {
		return m.call(named, "workflow_start", maps.Clone(m.start))
	}
	result := results[len(results)-1]
	m.note(sees, result, nil)
	tool, args, ok := nextCall(result)
	if !ok && m.last != nil && strings.HasSuffix(m.last.tool, "workflow_submit_activity") && strings.Contains(result, "Correct the result") {
		tool, args, ok = "workflow_submit_activity", m.last.args, true
	}
	if id := runID.FindStringSubmatch(result); id != nil && m.answer != nil && !m.answered && strings.Contains(result, "interrupted") {
		m.answered = true
		return m.call(named, "workflow_resume", object{"execution_id": id[1], "resume_payload": m.answer})
	}
	if !ok || len(results) > 20 || named(tool) == "" || tool == "workflow_show" || tool == "workflow_resume" {
		if strings.Contains(result, "completed") {
			return m.end("The run is completed.")
		}
		return m.end("I stop here.")
	}
	args = maps.Clone(args)
	switch tool {
	case "workflow_submit_activity":
		node, _ := args["node_id"].(string)
		list := m.outcomes[node]
		if len(list) == 0 {
			return m.end("I have no result for " + node)
		}
		if m.submitted == nil {
			m.submitted = map[string]int{}
		}
		args["outcome"] = object{"ok": true, "result": list[min(m.submitted[node], len(list)-1)]}
		m.submitted[node]++
	}
	return m.call(named, tool, args)
}

func (m *model) call(named func(string) string, tool string, args object) turn {
	m.last = &turn{tool: named(tool), args: args}
	m.note(calls, tool, args)
	return *m.last
}

func (m *model) end(text string) turn {
	m.note(says, text, nil)
	return turn{text: text}
}

const sees, calls, says = "sees ", "calls", "says "

// note adds a line to the transcript.
func (m *model) note(verb, text string, args object) {
	m.transcript = append(m.transcript, said{verb, strings.TrimSpace(text), args})
}

// seen returns the transcript so far.
func (m *model) seen() (text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.transcript {
		text += "model " + s.verb + "  " + s.text
		if s.verb == calls {
			text += " " + compact(s.args)
		}
		text += "\n"
	}
	return text
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// cut shortens a text to its first n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
