// Package webhook sends deliveries of events of runs to addresses that the operator has listed, signed as Standard Webhooks
// (https://www.standardwebhooks.com).
//
//	list, findings := webhook.Parse(text, secret)
//	sender := webhook.New(list, webhook.Options{Secret: secret, Setting: "--webhooks"})
//	runner, err := graph.New(store, graph.Options{Webhooks: list.Hooks(), Deliver: sender.Deliver})
package webhook
