package machine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

type object = map[string]any

// simNode is one node of a simulated workflow.
type simNode struct {
	id, kind string
	next     string
	// attempts, fatal (codes that are not retried), backoff and timeout of an activity or delegate.
	attempts         int
	fatal            bool
	backoff, timeout bool
	// counter of a count node, and of the switch that goes back to again while the counter is below limit.
	counter string
	limit   int
	again   string
	signal  string
	millis  int
	// entries, join and need of a parallel node.
	entries []string
	join    string
	need    int
	// caught is where the run goes on after a failure with one of the codes, "" if nothing catches; as puts the error into the state.
	caught string
	codes  []string
	as     bool
	// max and on of a loop: how many rounds, and where it goes on at more, "" to fail. until asks after the rounds.
	max   int
	on    string
	until bool
	// keep of a wait for a signal.
	keep bool
	// items, concurrency and tolerated of a node with a map; a node without one has no concurrency.
	items, concurrency, tolerated int
	// undo is the compensation, "" for none; rollback is that of the catch.
	undo     string
	rollback bool
}

// catches reports whether the node catches a failure with a code.
func (n *simNode) catches(code string) bool {
	return n.caught != "" && slices.ContainsFunc(n.codes, func(c string) bool { return c == "*" || c == code || c == "T*" && code == "TIMEOUT" })
}

// simWorkflow is a random workflow with everything a definition can have that ends: nested blocks, loops, retries,
// deadlines and every kind of wait.
type simWorkflow struct {
	rng *rand.Rand
	// more draws what was added later, so that seeds still mean what they meant.
	more  *rand.Rand
	nodes map[string]*simNode
	order []string
	first string
	// pure means that the end does not depend on the time: all joins wait for all, no attempt has a deadline, and no two
	// signals have the same name.
	pure bool
	size int
	// onFailure and onCancel say when a run is rolled back.
	onFailure, onCancel bool
}

func newSimWorkflow(seed uint64) *simWorkflow {
	w := drawWorkflow(rand.New(rand.NewPCG(seed, 77)), rand.New(rand.NewPCG(seed, 78)))
	w.compensate(rand.New(rand.NewPCG(seed, 79)))
	return w
}

func drawWorkflow(rng, more *rand.Rand) *simWorkflow {
	w := &simWorkflow{rng: rng, more: more, nodes: map[string]*simNode{}}
	w.pure = w.rng.IntN(3) == 0
	w.size = w.rng.IntN(14) + 2
	w.add(&simNode{id: "e", kind: "end"})
	w.add(&simNode{id: "s", kind: "start", next: w.chain("e", 3)})
	w.first = "s"
	return w
}

func (w *simWorkflow) add(n *simNode) string {
	if w.nodes[n.id] == nil {
		w.order = append(w.order, n.id)
	}
	w.nodes[n.id] = n
	return n.id
}

func (w *simWorkflow) id() string { return fmt.Sprintf("n%d", len(w.order)) }

// chain makes some nodes that lead to target, and returns the first.
func (w *simWorkflow) chain(target string, depth int) string {
	for range w.rng.IntN(4) + 1 {
		w.size--
		target = w.one(target, depth)
		if w.size <= 0 {
			break
		}
	}
	return target
}

func (w *simWorkflow) one(target string, depth int) string {
	kind := w.rng.IntN(12)
	if depth == 0 || w.size <= 0 {
		kind %= 9
	}
	n := &simNode{id: w.id(), next: target}
	switch kind {
	case 0, 1, 2, 3:
		n.kind = []string{"tool_call", "step", "llm_call", "agent_delegate"}[w.rng.IntN(4)]
		n.attempts, n.fatal, n.backoff = w.rng.IntN(3)+1, w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
		n.timeout = !w.pure && w.rng.IntN(3) == 0
		if n.kind != "agent_delegate" && w.rng.IntN(4) == 0 {
			n.items, n.concurrency, n.tolerated = w.rng.IntN(4), 1, w.rng.IntN(2)
			if !w.pure { // which of several failures is the last depends on the time
				n.concurrency += w.rng.IntN(3)
			}
		}
		w.catch(n, target, depth)
	case 4:
		n.kind = "set_state"
	case 5:
		n.kind, n.millis = "timer", w.rng.IntN(3)*100
	case 6:
		n.kind, n.signal = "signal", n.id
		if !w.pure {
			n.signal = []string{"go", "stop"}[w.rng.IntN(2)]
		}
		n.keep = w.more.IntN(2) == 0
	case 7:
		n.kind = "interrupt"
	case 8:
		n.kind = "subworkflow"
		w.catch(n, target, depth)
	case 9: // a loop: body, count, switch back
		n.kind, n.counter, n.limit = "switch", "c_"+n.id, w.rng.IntN(2)+2
		w.add(n)
		if w.more.IntN(2) == 0 {
			return w.loop(n, depth)
		}
		count := w.add(&simNode{id: w.id(), kind: "count", counter: n.counter, next: n.id})
		n.again = w.chain(count, depth-1)
		return n.again
	default:
		n.kind = "parallel"
		w.add(n)
		n.join = "all"
		if !w.pure {
			n.join = []string{"all", "any", "n_of_m"}[w.rng.IntN(3)]
		}
		for range w.rng.IntN(3) + 1 {
			n.entries = append(n.entries, w.chain(target, depth-1))
		}
		if !w.pure { // how far the other branches have come depends on the time
			w.catch(n, target, depth)
		}
		switch n.need = len(n.entries); n.join {
		case "any":
			n.need = 1
		case "n_of_m":
			n.need = w.rng.IntN(len(n.entries)) + 1
		}
		return n.id
	}
	return w.add(n)
}

// loop makes a checked loop that counts by itself, and beside that counts all rounds of all its visits: those decide whether another
// one follows. Some are left from within.
func (w *simWorkflow) loop(n *simNode, depth int) string {
	n.kind, n.max, n.until = "loop", w.more.IntN(3)+1, w.more.IntN(2) == 0
	if w.more.IntN(2) == 0 {
		n.on = n.next
	}
	last := n.id
	if w.more.IntN(3) == 0 {
		last = w.add(&simNode{id: w.id(), kind: "break", counter: n.counter, limit: w.more.IntN(3) + 1, again: n.next, next: last})
	}
	count := w.add(&simNode{id: w.id(), kind: "count", counter: n.counter, next: last})
	n.again = w.chain(count, depth-1)
	return n.id
}

// catch lets some nodes catch failures. The run goes on at once at the target, or after nodes of its own.
func (w *simWorkflow) catch(n *simNode, target string, depth int) {
	if w.rng.IntN(4) > 0 {
		return
	}
	n.codes = [][]string{{"*"}, {"NO"}, {"FATAL", "T*"}}[w.rng.IntN(3)]
	n.as = w.rng.IntN(2) == 0
	if n.caught = target; depth > 0 && w.size > 0 && w.rng.IntN(2) == 0 {
		if w.nodes[n.id] == nil {
			w.add(n) // its id is taken
		}
		n.caught = w.chain(target, depth-1)
	}
}

// source writes the definition.
func (w *simWorkflow) source() string {
	var nodes []any
	edges := []any{object{"source": "__start__", "target": w.first}}
	for _, id := range w.order {
		n := w.nodes[id]
		o, config := object{"id": id, "type": n.kind}, object{}
		switch n.kind {
		case "tool_call":
			config = object{"server": "s", "tool": "t"}
		case "step":
			config = object{"handler": "h"}
		case "llm_call":
			config = object{"model": "m", "prompts": []any{object{"role": "user", "content": "x"}}}
		case "agent_delegate":
			config = object{"agent_id": "a", "protocol": "sdk", "input_mapping": object{"n": 1}}
		case "set_state":
			config = object{"assignments": object{"log": object{"literal": id}, "v": object{"literal": id}, "m": object{"jq": "{" + id + ":1}"}}}
		case "count":
			o["type"] = "set_state"
			config = object{"assignments": object{n.counter: object{"jq": "(." + n.counter + " // 0) + 1"}}}
		case "switch":
			config = object{"cases": []any{object{"when": fmt.Sprintf(".%s < %d", n.counter, n.limit), "target": n.again}}, "default": n.next}
			edges = append(edges, object{"source": id, "target": n.again})
		case "break":
			o["type"] = "switch"
			config = object{"cases": []any{object{"when": fmt.Sprintf(".%s == %d", n.counter, n.limit), "target": n.again}}, "default": n.next}
		case "loop":
			o["type"] = "switch"
			loop := object{"body": n.again, "max": n.max, "counter": "l_" + id}
			if n.on != "" {
				loop["on_limit"] = n.on
			}
			if n.until {
				loop["until"] = fmt.Sprintf(".%s >= %d", n.counter, n.limit)
			} else {
				loop["while"] = fmt.Sprintf(".%s < %d and .l_%s < 100", n.counter, n.limit, id)
			}
			o["loop"], config = loop, object{"default": n.next}
		case "timer":
			o["type"] = "wait"
			config = object{"kind": "duration", "duration_ms": n.millis}
		case "signal":
			o["type"] = "wait"
			config = object{"kind": "signal", "signal": n.signal}
			if n.keep {
				o["keep"] = true
			}
		case "interrupt":
			config = object{"prompt": "?", "resume_schema": object{"type": "object", "required": []any{"a_" + id}}}
		case "subworkflow":
			config = object{"workflow_ref": "urn:c", "input_mapping": object{}}
		case "parallel":
			var branches []any
			for i, entry := range n.entries {
				branches = append(branches, object{"name": fmt.Sprintf("b%d", i), "entry": entry})
			}
			config = object{"join": n.join, "branches": branches}
			if n.join == "n_of_m" {
				config["n"] = n.need
			}
		}
		o["config"] = config
		if n.caught != "" {
			caught := object{"codes": n.codes, "target": n.caught}
			if n.as {
				caught["as"] = "caught"
			}
			if n.rollback && w.compensated() {
				caught["rollback"] = true
			}
			o["catch"] = []any{caught}
		}
		if n.undo != "" {
			o["compensate"] = object{"node": n.undo, "as": "undo"}
		}
		if n.concurrency > 0 {
			o["map"] = object{
				"items": fmt.Sprintf("[range(%d)]", n.items), "concurrency": n.concurrency, "collect": "c_" + id,
				"tolerate": object{"count": n.tolerated, "as": "f_" + id},
			}
		}
		if n.attempts > 1 {
			retry := object{"max_attempts": n.attempts}
			if n.backoff {
				retry["initial_interval"] = "50ms"
			}
			if n.fatal {
				retry["non_retryable_errors"] = []any{"FATAL"}
			}
			o["retry"] = retry
		}
		if n.timeout {
			o["timeout"] = "1s"
		}
		nodes = append(nodes, o)
		if n.next != "" && n.kind != "end" {
			edges = append(edges, object{"source": id, "target": n.next})
		}
	}
	extensions := object{"uses": []any{"catch", "compensate", "early_signals", "loop", "map"}}
	var rollback []any
	if w.onFailure {
		rollback = append(rollback, "failure")
	}
	if w.onCancel {
		rollback = append(rollback, "cancel")
	}
	if rollback != nil {
		extensions["rollback"] = rollback
	}
	text, err := json.Marshal(object{
		"document": object{"schema": "urn:t", "name": "sim", "version": "1"},
		"state_schema": object{"type": "object", "properties": object{
			"log": object{"type": "array", "reducer": "append"}, "m": object{"type": "object", "reducer": "merge"},
		}},
		"nodes": nodes, "edges": edges, "x-workflows-engine": extensions,
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// simWorld decides how every attempt ends, by its name alone.
type simWorld struct {
	seed uint64
	pure bool
}

type simOutcome struct {
	ok    bool
	code  string
	final bool
	// repair means that the attempt asks for a repair.
	repair bool
}

// dice returns 0 to 99 for a visit, and for an attempt unless it is 0.
func (w simWorld) dice(node string, visit, attempt int) uint64 {
	h := mix(w.seed, node)
	return rand.New(rand.NewPCG(h, uint64(visit)<<32|uint64(attempt))).Uint64() % 100
}

func mix(seed uint64, text string) uint64 {
	for i := range len(text) {
		seed = (seed ^ uint64(text[i])) * 1099511628211
	}
	return seed
}

func (w simWorld) outcome(node string, visit, attempt int) simOutcome {
	out := simOutcome{code: "NO", repair: w.dice(node+" repair", visit, attempt) < 40}
	switch d := w.dice(node, visit, attempt); {
	case d < 80:
		return simOutcome{ok: true}
	case d < 91:
	case d < 97 || w.pure:
		out.code = "FATAL"
	default:
		out.final = true
	}
	return out
}

// child decides how a subworkflow ends.
func (w simWorld) child(node string, visit int) machine.Status {
	switch d := w.dice(node, visit, 0); {
	case d < 80:
		return machine.Completed
	case d < 90:
		return machine.Failed
	default:
		return machine.Cancelled
	}
}

// output is what a success at a visit adds to the state.
func output(node string, visit int) object {
	return object{"log": fmt.Sprintf("%s#%d", node, visit), "m": object{node: float64(visit)}, "v": node}
}

// answerTo is what a person answers: it overwrites, without reducers.
func answerTo(node string, visit int) object {
	return object{"a_" + node: float64(visit), "v": node, "log": []any{"answered " + node}}
}

// naive walks a simulated workflow step by step, slowly and obviously. It returns the state of a run after its recorded events
// or, without records, its expected end.
type naive struct {
	w     *simWorkflow
	world simWorld
	// facts are the recorded events by "Name node#visit" or "Name node#visit.attempt"; nil to predict a pure run.
	facts      map[string]*history.Record
	sequential bool
	// host means that the host performs activities in a predicted run.
	host       bool
	visits     map[string]int
	complaints []string
	// older lists the visits of blocks that began under the rule of older releases: a failed branch waits for those before it.
	older map[string]bool
	// open says that a prediction is of no use: a branch failed, and how far the others had come by then depends on the time.
	open bool
}

type verdict int

const (
	stuck verdict = iota
	arrived
	failed
	completed
)

// passage is the outcome of a path: its verdict, the state at its end, and its updates in order.
type passage struct {
	verdict verdict
	view    object
	updates []simUpdate
	// at is the node that failed, and code the code of the failure.
	at, code string
	// tried counts the attempts of the last activity.
	tried int
	// last is the seq of the newest event on it.
	last int64
	// done is what can be undone; rolling says that it is being undone, fatal that a compensation has failed.
	done           []simUndo
	rolling, fatal bool
}

type simUpdate struct {
	delta   object
	overlay bool
}

func (u simUpdate) apply(view object) object {
	next := maps.Clone(view)
	for k, v := range u.delta {
		switch {
		case k == "log" && !u.overlay:
			previous, _ := next[k].([]any)
			next[k] = append(slices.Clone(previous), v)
		case k == "m" && !u.overlay:
			merged := object{}
			previous, _ := next[k].(object)
			maps.Copy(merged, previous)
			added, _ := v.(object)
			maps.Copy(merged, added)
			next[k] = merged
		default:
			next[k] = v
		}
	}
	return next
}

func (p *passage) update(u simUpdate) {
	p.view = u.apply(p.view)
	p.updates = append(p.updates, u)
}

// factKey names an event; attempt is 0 for events without one.
func factKey(name history.Name, node string, visit, attempt int) string {
	key := string(name) + " " + node + "#" + strconv.Itoa(visit)
	if attempt > 0 {
		key += "." + strconv.Itoa(attempt)
	}
	return key
}

func (o *naive) fact(p *passage, name history.Name, node string, visit, attempt int) *history.Payload {
	r := o.facts[factKey(name, node, visit, attempt)]
	if r == nil {
		return nil
	}
	p.last = max(p.last, r.Seq)
	return &r.Payload
}

// happened reports whether an event is recorded; in a predicted run every event is.
func (o *naive) happened(p *passage, name history.Name, node string, visit int) bool {
	return o.facts == nil || o.fact(p, name, node, visit, 0) != nil
}

func (o *naive) complain(format string, args ...any) {
	o.complaints = append(o.complaints, fmt.Sprintf(format, args...))
}

// walk walks from a node up to the node until, which it does not enter.
func (o *naive) walk(view object, from, until string) passage {
	p := passage{view: view}
	rounds := map[string]int{}
	for at := from; ; {
		if at == until {
			p.verdict = arrived
			return p
		}
		n, visit := o.w.nodes[at], o.visits[at]+1
		if !o.happened(&p, history.NodeScheduled, at, visit) {
			return p
		}
		o.visits[at] = visit
		p.at, p.code = at, ""
		next, v := n.next, arrived
		switch n.kind {
		case "end":
			p.verdict = completed
			return p
		case "tool_call", "step", "llm_call", "agent_delegate":
			if n.concurrency > 0 {
				v = o.items(&p, n, visit)
			} else if v = o.attempts(&p, n, visit); v == arrived {
				p.did(n, visit)
				p.update(simUpdate{delta: output(at, visit)})
			}
		case "set_state":
			p.update(simUpdate{delta: object{"log": at, "v": at, "m": object{at: 1.0}}})
		case "count":
			count, _ := p.view[n.counter].(float64)
			p.update(simUpdate{delta: object{n.counter: count + 1}})
		case "switch":
			if count, _ := p.view[n.counter].(float64); count < float64(n.limit) {
				next = n.again
			}
		case "break":
			if count, _ := p.view[n.counter].(float64); count == float64(n.limit) {
				next = n.again
				delete(rounds, o.w.loopOf(n))
			}
		case "loop":
			next, v = o.round(&p, n, rounds)
		case "timer":
			v = o.wait(&p, history.TimerFired, at, visit)
		case "signal":
			if v = o.wait(&p, history.SignalReceived, at, visit); v == arrived {
				brought := output(at, visit)
				if o.facts != nil { // a signal that was kept was not made for this visit
					brought = o.fact(&p, history.SignalReceived, at, visit, 0).SignalPayload
				}
				p.update(simUpdate{delta: brought})
			}
		case "interrupt":
			if v = o.wait(&p, history.InterruptResumed, at, visit); v == arrived {
				p.update(simUpdate{delta: answerTo(at, visit), overlay: true})
			}
		case "subworkflow":
			if v = o.wait(&p, history.SubworkflowCompleted, at, visit); v == arrived {
				if o.world.child(at, visit) == machine.Completed {
					p.did(n, visit)
					p.update(simUpdate{delta: output(at, visit)})
				} else {
					v, p.code = failed, "NO"
				}
			}
		case "parallel":
			v = o.block(&p, n, visit)
		}
		if v == failed && !p.fatal && n.catches(p.code) {
			if n.as {
				p.update(simUpdate{delta: object{"caught": p.at + " " + p.code}})
			}
			next, v = n.caught, arrived
			if n.rollback {
				v = o.rollBack(&p)
				p.rolling = v == stuck
			}
		}
		if v != arrived {
			p.verdict = v
			return p
		}
		at = next
	}
}

// loopOf returns the loop that a break leaves.
func (w *simWorkflow) loopOf(n *simNode) string {
	for w.nodes[n.next].kind != "loop" {
		n = w.nodes[n.next]
	}
	return n.next
}

// round decides whether another round of a loop follows.
func (o *naive) round(p *passage, n *simNode, rounds map[string]int) (next string, v verdict) {
	count, _ := p.view[n.counter].(float64)
	made, inside := rounds[n.id]
	more := count < float64(n.limit)
	if n.until && !inside {
		more = true
	}
	if more && made == n.max && n.on == "" {
		p.code = "LOOP_LIMIT_EXCEEDED"
		return "", failed
	}
	limit := more && made == n.max
	if more = more && !limit; more {
		made++
	}
	if more || !inside {
		p.update(simUpdate{delta: object{"l_" + n.id: float64(made)}})
	}
	switch {
	case more:
		rounds[n.id] = made
		return n.again, arrived
	case limit:
		delete(rounds, n.id)
		return n.on, arrived
	default:
		delete(rounds, n.id)
		return n.next, arrived
	}
}

func (o *naive) wait(p *passage, name history.Name, node string, visit int) verdict {
	if o.happened(p, name, node, visit) {
		return arrived
	}
	return stuck
}

// performedByHost reports whether the host performs an attempt.
func (o *naive) performedByHost(p *passage, n *simNode, visit, attempt int) bool {
	if o.facts == nil {
		return o.host
	}
	request := o.fact(p, history.ActivityRequested, n.id, visit, attempt)
	return request != nil && request.Mode == string(machine.HostMediated)
}

// attempts tries an activity as often as its policy says, and once more in a visit if an executor asks for a repair.
func (o *naive) attempts(p *passage, n *simNode, visit int) verdict {
	repaired := false
	for attempt := 1; ; attempt++ {
		out := o.world.outcome(n.id, visit, attempt)
		named := n.attempts > 1 && n.fatal && out.code == "FATAL"
		repair := out.repair && !repaired && !named && n.kind != "agent_delegate" && !o.performedByHost(p, n, visit, attempt)
		if o.facts != nil {
			failure := o.fact(p, history.ActivityFailed, n.id, visit, attempt)
			switch {
			case failure == nil && o.fact(p, history.ActivityCompleted, n.id, visit, 0) == nil:
				return stuck
			case failure != nil && n.concurrency > 0 && failure.Code == "ACTIVITY_CANCELLED":
				return stuck // the map had failed by other items
			case failure == nil && !out.ok:
				o.complain("%s#%d.%d failed, and is recorded as completed", n.id, visit, attempt)
			case failure != nil && failure.Code == "TIMEOUT" && n.timeout:
				out, repair = simOutcome{code: "TIMEOUT"}, false
			case failure != nil && (out.ok || failure.Code != out.code):
				o.complain("%s#%d.%d ended as %+v, recorded is a failure %q", n.id, visit, attempt, out, failure.Code)
			}
			if failure != nil && (failure.Repair != nil) != repair {
				o.complain("%s#%d.%d is recorded with the repair %v, want one: %v", n.id, visit, attempt, failure.Repair, repair)
			}
			if failure != nil && out.final && !failure.WillRetry {
				p.code, p.tried = out.code, attempt
				return failed // hosts cannot forbid another attempt, executors can
			}
			out.final = false
		}
		if out.ok {
			p.tried = attempt
			return arrived
		}
		if repair {
			repaired = true
			continue
		}
		if attempt >= n.attempts || n.fatal && out.code == "FATAL" {
			p.code, p.tried = out.code, attempt
			return failed
		}
	}
}

// items tries an activity for each item of its map. Each item has a visit of its own.
func (o *naive) items(p *passage, n *simNode, visit int) verdict {
	o.visits[n.id] += n.items
	outputs, failures := make([]any, n.items), map[int]passage{}
	ended, newest := 0, -1
	for i := range n.items {
		item := passage{at: n.id}
		if o.facts == nil && len(failures) > n.tolerated || o.fact(&item, history.NodeScheduled, n.id, visit+1+i, 0) == nil && o.facts != nil {
			break
		}
		switch o.attempts(&item, n, visit+1+i) {
		case arrived:
			outputs[i] = output(n.id, visit+1+i)
			p.did(n, visit+1+i)
			ended++
		case failed:
			ended++
			if failures[i] = item; newest < 0 || o.facts == nil || item.last > failures[newest].last {
				newest = i
			}
		}
		p.last = max(p.last, item.last)
	}
	switch {
	case len(failures) > n.tolerated:
		p.code = failures[newest].code
		return failed
	case ended < n.items:
		return stuck
	}
	list := []any{}
	for i := range n.items {
		if f, bad := failures[i]; bad {
			list = append(list, fmt.Sprint(i, " ", f.code, " ", f.tried))
		}
	}
	p.update(simUpdate{delta: object{"c_" + n.id: outputs, "f_" + n.id: list}})
	return arrived
}

// block walks the branches of a parallel node, each on the state at the fork. It merges their updates in branch order, as far as
// all branches before have ended, and if one has failed that all are needed for, up to that one.
func (o *naive) block(p *passage, n *simNode, visit int) verdict {
	atOnce := n.join == "all" && !o.sequential && !o.older[fmt.Sprint(n.id, "#", visit)]
	branches := make([]passage, len(n.entries))
	fork, wins, open, losses, lost := p.view, 0, 0, 0, false
	ended := int64(0)
	for i, entry := range n.entries {
		decided := wins >= n.need || losses > len(branches)-n.need
		if o.sequential {
			decided = open > 0 || wins >= n.need || n.join == "all" && losses > 0
		}
		begun := o.facts[factKey(history.NodeScheduled, entry, o.visits[entry]+1, 0)]
		if decided && (o.sequential || o.facts == nil || begun == nil || begun.Seq > ended) {
			branches[i] = passage{view: fork} // it never began; a later visit may have
			open++
			continue
		}
		b := o.walk(fork, entry, n.next)
		p.done, p.rolling = append(p.done, b.done...), p.rolling || b.rolling
		if b.fatal {
			p.at, p.code, p.fatal, b.verdict = b.at, b.code, true, stuck
		}
		branches[i] = b
		if b.verdict != stuck {
			ended = max(ended, b.last)
		}
		switch b.verdict {
		case arrived:
			wins++
		case stuck:
			open++
		case failed:
			losses++
			if o.open = o.open || atOnce && len(branches) > 1; atOnce {
				lost, p.at, p.code = true, b.at, b.code
			}
		}
		if o.sequential { // the next one begins where this one has come to
			for _, u := range b.updates {
				fork = u.apply(fork)
			}
		}
	}
	joined := wins >= n.need
	if n.join == "all" {
		joined = wins == len(branches)
	} else {
		lost = !joined && (open == 0 || !o.sequential && wins+open < n.need)
	}
	// A branch whose predecessors have all ended adds its updates, unless it was cancelled when the last of these ended.
	decided := int64(0)
	for _, b := range branches {
		p.last = max(p.last, b.last)
		if b.verdict != stuck {
			decided = max(decided, b.last)
		}
	}
	head, past, before := true, false, int64(0)
	for _, b := range branches {
		cut := n.join != "all" && joined && b.verdict == stuck && before == decided
		before = max(before, b.last)
		if head && !cut || (n.join != "all" && (joined || lost) || lost && atOnce && !past) && b.verdict != stuck {
			for _, u := range b.updates {
				p.update(u)
			}
		}
		past = past || b.verdict == failed
		if n.join != "all" {
			head = head && b.verdict != stuck
			continue
		}
		if head && b.verdict == failed && !atOnce {
			lost, p.at, p.code = true, b.at, b.code
		}
		head = head && b.verdict == arrived
	}
	switch {
	case p.fatal:
		return failed
	case joined, lost:
		p.rolling = false // what was undone in a branch is dropped with it
	}
	switch {
	case joined:
		return arrived
	case lost && n.join != "all":
		p.code = "JOIN_NOT_REACHED"
		return failed
	case lost:
		return failed
	default:
		return stuck
	}
}
