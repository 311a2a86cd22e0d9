// Package page serves the web page of an engine to a person at a browser on the same machine: runs, questions with their forms, and the
// workflows that can be started. It knows no store and takes whatever its graph.Engine offers, with graph.Need.
//
// A GET page is one row of the table routes: a function that returns a view. The same function renders the page, each live update of it
// (/events) and a form that was refused. Only the handlers of POST requests, in act.go, change anything.
package page
