// Package runfile reads and writes exported runs: files with one JSON object a line.
//
//	{"type":"header","format":"workflows-engine/runs","version":1,"execution_id":"r","exported_at":"…"}
//	{"type":"definition","hash":"…","name":"order","version":"1","text":{…}}
//	{"type":"run","execution_id":"r","records":2}
//	{"type":"record","seq":1,"kind":"event","name":"ExecutionStarted","created_at":"…","payload":{…}}
//	{"type":"record","seq":2,"kind":"command","name":"ScheduleNode","created_at":"…","payload":{…}}
//	{"type":"trailer","definitions":1,"runs":1,"records":2,"sha256":"…"}
//
// The first run is the exported one; its subworkflows follow. The trailer holds the hash of all earlier lines, so truncated or changed
// files are detected. Optional fields: "signatures", the signature blocks of a signed definition; "foreign":true for a record written
// by another engine; "handled" for a failed or cancelled run that needs no more attention; and "redacted":true in the header of a file
// with masked values, which cannot be imported.
//
// Read is strict: unknown fields, records out of order and definitions that do not match their hash are errors with the line.
package runfile
