package config

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
)

// loadWebhooks reads the webhook targets, as JSON or as the path of a file. An invalid list ends the start with all its findings.
func loadWebhooks(c *Config, s setting, env Environment) error {
	text, file, err := env.textOf(s.value, s.from)
	if err != nil || text == nil {
		return err
	}
	list, findings := webhook.Parse(text, env.secret)
	if list == nil {
		e := problem.New(problem.UsageError, "invalid %s", placeOf(s.from, file))
		e.Findings = findings
		return e
	}
	for name, t := range list.Targets {
		env.secrets.addNamed(t.Headers)
		if t.SecretRef != "" {
			env.notePlain("webhook target "+name, t.URL)
		}
	}
	c.Webhooks = list
	return nil
}

// Hooks returns the webhook targets for a Runner, nil without any, and the function that sends to them.
func (c *Config) Hooks() (map[string]graph.Webhook, func(context.Context, history.Delivery) (history.Receipt, error)) {
	if c.Webhooks == nil {
		return nil, nil
	}
	sender := webhook.New(c.Webhooks, webhook.Options{Secret: c.env.secret, Setting: "--" + flagWebhooks + " or " + envname.Webhooks})
	return c.Webhooks.Hooks(), sender.Deliver
}
