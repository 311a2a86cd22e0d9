package elicit

import (
	"slices"
	"sync"
	"time"
)

// State is the state of a question to a person.
type State string

// The states of questions. A question that was answered, withdrawn, not sent, or whose answer could not be stored is
// forgotten, so that a caller can ask again. The others are remembered, so that a person is not asked twice.
const (
	// Asking: the host shows the form.
	Asking State = "asking"
	// Answered: the answer is recorded.
	Answered State = "answered"
	// Overtaken: the run no longer waits for the answer.
	Overtaken State = "overtaken"
	// Unsent: the form was not sent to the host.
	Unsent State = "unsent"
	// Failed: the answer could not be recorded.
	Failed State = "failed"
	// Declined: the person does not want to answer.
	Declined State = "declined"
	// Closed: the person closed the form without an answer.
	Closed State = "closed"
	// Unfit: the person's answers were invalid.
	Unfit State = "unfit"
	// Unable: the host could not show the form.
	Unable State = "unable"
)

// End is how a question ended. Err is the cause of Unsent, Failed, Unfit and Unable, Payload the answer of Answered.
type End struct {
	State   State
	Err     error
	Payload map[string]any
}

func (s State) remembered() bool { return s == Declined || s == Closed || s == Unfit || s == Unable }

// Key names a question: who is asked, as a session of any comparable type, and the interrupt.
type Key struct {
	Session   any
	Interrupt string
}

// MaxTimes is how often a person is asked the same question, however often it is requested.
const MaxTimes = 5

// maxRemembered limits the remembered questions that have ended without an answer.
const maxRemembered = 1000

// Desk remembers questions. The zero value is ready for use, by several goroutines at once.
type Desk struct {
	mu        sync.Mutex
	questions map[Key]*Question
	// ended holds the remembered questions that have ended, the oldest first.
	ended []Key
	// answers holds the newest answers given to Settle, the oldest first.
	answers []answer
}

type answer struct {
	k       Key
	payload map[string]any
}

// Question is an open or ended question.
type Question struct {
	done  chan struct{}
	end   End
	times int
	// shown is when Show noted the form, zero for a question of Ask.
	shown time.Time
}

// Done is closed when the question has ended.
func (q *Question) Done() <-chan struct{} { return q.done }

// End is how the question ended; it may be called once Done is closed.
func (q *Question) End() End { return q.end }

// Ask returns the question if it is open or remembered. Otherwise, or if again is set and it is not open, put asks it, in a goroutine that start
// starts.
func (d *Desk) Ask(k Key, again bool, start func(func()), put func() End) *Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	times := 0
	if q := d.questions[k]; q != nil {
		if q.end.State == "" || !again || q.times >= MaxTimes {
			return q
		}
		times = q.times
		d.ended = slices.DeleteFunc(d.ended, func(e Key) bool { return e == k })
	}
	q := &Question{done: make(chan struct{}), times: times + 1}
	if d.questions == nil {
		d.questions = map[Key]*Question{}
	}
	d.questions[k] = q
	start(func() {
		end := put()
		d.mu.Lock()
		defer d.mu.Unlock()
		if q.end = end; d.questions[k] == q {
			d.settle(k, q)
		}
		close(q.done)
	})
	return q
}

// Show notes that an answer of a call shows the form of a question. If a form younger than patience is open already,
// mine is false and q is its question. After patience the form counts as lost, and another one is shown.
func (d *Desk) Show(k Key, now time.Time, patience time.Duration) (q *Question, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q = d.questions[k]
	if q != nil && q.end.State == "" {
		if now.Sub(q.shown) < patience {
			return q, false
		}
		q.shown = now
		return q, true
	}
	times := 1
	if q != nil {
		times += q.times
		d.ended = slices.DeleteFunc(d.ended, func(e Key) bool { return e == k })
	}
	q = &Question{done: make(chan struct{}), times: times, shown: now}
	if d.questions == nil {
		d.questions = map[Key]*Question{}
	}
	d.questions[k] = q
	return q, true
}

// Settle notes the end of a question that was not asked by Ask.
func (d *Desk) Settle(k Key, end End) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &Question{done: make(chan struct{}), end: end, times: 1}
	switch before := d.questions[k]; {
	case before == nil:
	case before.end.State == "":
		q.times = before.times
		before.end = end
		close(before.done)
	default:
		q.times += before.times
		d.ended = slices.DeleteFunc(d.ended, func(e Key) bool { return e == k })
	}
	close(q.done)
	if d.questions == nil {
		d.questions = map[Key]*Question{}
	}
	d.questions[k] = q
	d.settle(k, q)
	if end.State == Answered {
		d.answers = append(d.answers, answer{k, end.Payload})
		d.answers = d.answers[max(0, len(d.answers)-maxAnswers):]
	}
}

// maxAnswers is how many answers are remembered.
const maxAnswers = 100

// Answer returns the answer to a question that Settle noted, if it is remembered.
func (d *Desk) Answer(k Key) (payload map[string]any, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.answers {
		if a.k == k {
			return a.payload, true
		}
	}
	return nil, false
}

// settle forgets a question that has ended, or stores it among the last ones.
func (d *Desk) settle(k Key, q *Question) {
	if !q.end.State.remembered() {
		delete(d.questions, k)
		return
	}
	d.ended = append(d.ended, k)
	if len(d.ended) > maxRemembered {
		delete(d.questions, d.ended[0])
		d.ended = slices.Delete(d.ended, 0, 1)
	}
}

// Of returns the state of a question: Asking, or its remembered end, or "". more reports whether it can be asked
// (again).
func (d *Desk) Of(k Key) (end End, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.questions[k]
	switch {
	case q == nil:
		return End{}, true
	case q.end.State == "":
		return End{State: Asking}, false
	}
	return q.end, q.times < MaxTimes
}

// Forget removes the questions of a session that has ended. Open questions end by themselves.
func (d *Desk) Forget(session any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.questions {
		if k.Session == session {
			delete(d.questions, k)
		}
	}
	d.ended = slices.DeleteFunc(d.ended, func(k Key) bool { return k.Session == session })
}
