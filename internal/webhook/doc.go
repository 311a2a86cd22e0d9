// Package webhook sends deliveries of events of runs to addresses that the operator has listed, signed in two ways: in headers of this
// engine, and as Standard Webhooks has it (https://www.standardwebhooks.com).
//
//	list, findings := webhook.Parse(text, secret)
//	sender := webhook.New(list, webhook.Options{Secret: secret, Setting: "--webhooks"})
//	runner, err := graph.New(store, graph.Options{Webhooks: list.Hooks(), Deliver: sender.Deliver})
package webhook
