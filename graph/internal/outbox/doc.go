// Package outbox notifies targets of what happens to runs.
//
// An event of a run is written for each target in the very transaction that appends the records which bring it (Box.Deliveries), so that
// none is lost. A Sender sends what is due, to the targets that its process has: at least once, always under the same event id. An attempt
// is recorded before anything is sent, and keeps other processes away for a while; if its process dies, another one sends again.
package outbox
