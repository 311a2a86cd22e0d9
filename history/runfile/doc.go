// Package runfile is the form in which runs leave one database and enter another: one JSON object a line.
//
//	{"type":"header","format":"workflows-engine/runs","version":1,"execution_id":"r","exported_at":"…"}
//	{"type":"definition","hash":"…","name":"order","version":"1","text":{…}}
//	{"type":"run","execution_id":"r","records":2}
//	{"type":"record","seq":1,"kind":"event","name":"ExecutionStarted","created_at":"…","payload":{…}}
//	{"type":"record","seq":2,"kind":"command","name":"ScheduleNode","created_at":"…","payload":{…}}
//	{"type":"trailer","definitions":1,"runs":1,"records":2,"sha256":"…"}
//
// The first run is the one that was asked for, its subworkflows follow. The hash in the last line is that of all lines
// before it, so that a file that was cut off or changed is noticed. A record that another engine wrote says so
// ("foreign":true). A file in which values were masked says so in its header ("redacted":true); it can be read by people,
// and not be imported.
//
// Read is strict: a member that it does not know, a record that is out of order, a definition that is not the one that its
// hash names, are errors with the line.
package runfile
