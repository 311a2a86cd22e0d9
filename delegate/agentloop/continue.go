package agentloop

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Steps of an attempt that continues where another one has failed (package agentsteps).
const (
	StepContinued    = agentsteps.Continued
	StepReconfigured = agentsteps.Reconfigured
	StepAnswered     = agentsteps.Answered
)

// continued continues after the failure of an attempt. A model whose answer did not count is told why.
func (m *Machine) continued(e *agentsteps.Resumed) error {
	a := m.root
	if a.phase == listed {
		return errors.New("the agent has not begun")
	}
	if e.Current {
		m.reconfigures = true
	}
	if !agentsteps.Told(e.Code) {
		return nil
	}
	if m.done != nil {
		if m.done.Failure == nil {
			return errors.New("the agent has ended before")
		}
		if !m.reconfigures && (a.exceeded(false) != "" || a.finishing != "") {
			return nil // it ends by its budget
		}
		m.done, a.failure = nil, nil
		a.phase, a.calls = ready, nil
	}
	a.errorsInRow, a.same, a.lastCall = 0, 0, ""
	a.repairs, a.cuts, a.empties, a.part = 0, 0, 0, ""
	a.raised, a.answering = false, a.finishing != ""
	switch a.phase {
	case asking, pausing:
		if a.room.req != nil {
			return nil
		}
		a.again, a.req = true, nil
	case ready:
	default:
		return nil // the results of its calls come first, and are enough
	}
	a.phase = ready
	a.talk.say(chat.User, "[engine] Your last answer did not count: "+problem.Excerpt(e.Message, problem.MaxText)+". Go on from here, and do it another way.")
	m.settle()
	return nil
}

// Reconfigures reports whether the agent continues with the current configuration, which must be the next input (Reconfigured).
func (m *Machine) Reconfigures() bool { return m.reconfigures }

// take copies the settings that do not change the identity or the rights of the agent: models, prices, budgets, retries and fallback.
func (c *Config) take(from *Config) {
	c.Models, c.Fallback, c.Retry, c.Budgets, c.Compaction.Model = from.Models, from.Fallback, from.Retry, from.Budgets, from.Compaction.Model
	for i := range c.Agents {
		sub := &c.Agents[i].Config
		if at := slices.IndexFunc(from.Agents, func(s Sub) bool { return s.Config.Name == sub.Name }); at >= 0 {
			sub.take(&from.Agents[at].Config)
		}
	}
}

// reconfiguredBody records the new configuration of the agent.
func (m *Machine) reconfiguredBody(today Config) (body, error) {
	today = today.withFallbacks().withDefaults()
	config, err := m.taken(&today)
	if err != nil {
		return nil, err
	}
	plain, err := toValue(config)
	if err != nil {
		return nil, refuse("the configuration is not JSON: " + err.Error())
	}
	if jsonvalue.Size(plain, maxResultBytes) > maxResultBytes {
		return nil, &problem.Error{Code: problem.AgentConfigInvalid, Message: fmt.Sprintf("the configuration is larger than %d bytes", maxResultBytes)}
	}
	return body{"config": plain, "configHash": jsonvalue.Hash(plain), "previousHash": m.configHash}, nil
}

// taken returns the agent's configuration, updated from another one. The error tells why the other one cannot be used.
func (m *Machine) taken(from *Config) (*Config, error) {
	plain, err := toValue(m.root.cfg)
	config := &Config{}
	if err == nil {
		err = fromValue(plain, config)
	}
	if err != nil {
		return nil, err
	}
	config.take(from)
	if f := config.check(strconv.Quote(config.Name), 0); f != nil {
		return nil, &problem.Error{Code: f.Code, Message: f.Message}
	}
	return config, nil
}

// reconfigured gives the agent and its sub-agents another configuration, and clears an exhausted budget or the request for an early answer.
// The first model is asked first, as in a new turn.
func (m *Machine) reconfigured(e *agentsteps.Changed) error {
	recorded := Config{}
	if err := fromValue(e.Plain, &recorded); err != nil {
		return err
	}
	recorded = recorded.withDefaults() // a release may know more of them than the one that recorded it
	config, err := m.taken(&recorded)
	if err != nil {
		return err
	}
	switch {
	case e.PreviousHash != m.configHash:
		return errors.New("it follows another configuration")
	case e.Hash != jsonvalue.Hash(e.Plain) || !bytes.Equal(marshal(config), marshal(&recorded)):
		return errors.New("its configuration is not that of the agent with other models and budgets")
	case m.done != nil && m.done.Failure == nil:
		return errors.New("the agent has ended before")
	}
	m.root.cfg.take(config)
	m.done, m.configHash, m.reconfigures = nil, e.Hash, false
	if a := m.root; a.phase == ended {
		a.phase = ready
		if len(a.calls) > 0 { // a sub-agent has used the budget up
			a.phase = calling
		}
	}
	m.root.each((*agent).begin)
	return nil
}

// begin resets an agent to its first model, and clears the effects of an exhausted budget.
func (a *agent) begin() {
	a.failure, a.expired, a.refusedCall = nil, false, ""
	a.model, a.attempts, a.fails, a.round, a.restUntil = 0, 1, nil, 0, time.Time{}
	a.leftAt, a.trial, a.stay, a.tooLarge = time.Time{}, false, 0, nil
	if a.room.req != nil {
		a.room.try--
	} else if a.phase == asking || a.phase == pausing {
		a.again = true
	}
	a.room.req, a.room.failed, a.room.refusedAt, a.room.urgent, a.room.stage = nil, false, 0, false, roomNone
	switch a.phase {
	case asking, pausing, summing, following:
		a.phase = ready
	}
	a.req = nil
	if a.finishing == "" {
		return
	}
	a.finishing, a.answering, a.raised, a.part = "", false, false, ""
	a.repairs, a.cuts, a.empties = 0, 0, 0
	a.talk.say(chat.User, "[engine] The budget was raised since. You can call tools again. Go on from here.")
}
