// Package runfile reads and writes exported runs: files with one JSON object a line.
//
//	{"type":"header","format":"workflows-engine/runs","version":1,"execution_id":"r","exported_at":"…"}
//	{"type":"definition","hash":"…","name":"order","version":"1","text":{…}}
//	{"type":"run","execution_id":"r","records":2}
//	{"type":"record","seq":1,"kind":"event","name":"ExecutionStarted","created_at":"…","payload":{…}}
//	{"type":"record","seq":2,"kind":"command","name":"ScheduleNode","created_at":"…","payload":{…}}
//	{"type":"trailer","definitions":1,"runs":1,"records":2,"sha256":"…"}
//
// The first run is the exported one; its subworkflows follow. The hash in the last line is that of all lines before it, so that
// a truncated or changed file is detected. A signed definition has a member "signatures", a list of its signature blocks. A record that
// another engine wrote has "foreign":true. A failed or cancelled run that needs nobody any more has a member "handled". The header of a file with masked values has "redacted":true; such a file cannot be imported.
//
// Read is strict: an unknown member, a record out of order, a definition that does not match its hash are errors with the line.
package runfile
