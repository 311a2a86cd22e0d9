// Package outbox delivers events of runs to webhook targets.
//
// Box.Deliveries makes one delivery for each target; it is stored in the transaction that appends the records of the event, so that no event
// is lost. A Sender sends the deliveries that are due to the targets of its process: at least once, always under the same event id. It
// claims a delivery before it sends it. If its process dies, another process sends the delivery again once the claim has expired.
package outbox
