CREATE TABLE history (
	execution_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	payload_json TEXT NOT NULL,
	created_at TEXT NOT NULL,
	PRIMARY KEY (execution_id, seq)
);
INSERT INTO history VALUES ('ref-delegate', 1, 'event', 'ExecutionStarted', '{"executionId":"ref-delegate","workflowName":"conformance-agent-delegate-linear","workflowVersion":"1.0.0","inputKeys":["task"]}', '2026-11-21T01:00:00.000Z');
INSERT INTO history VALUES ('ref-delegate', 2, 'command', 'ScheduleNode', '{"executionId":"ref-delegate","nodeId":"s"}', '2026-11-21T01:00:01.000Z');
INSERT INTO history VALUES ('ref-delegate', 3, 'event', 'NodeScheduled', '{"executionId":"ref-delegate","nodeId":"s"}', '2026-11-21T01:00:02.000Z');
INSERT INTO history VALUES ('ref-delegate', 4, 'command', 'CompleteNode', '{"executionId":"ref-delegate","nodeId":"s","output":{}}', '2026-11-21T01:00:03.000Z');
INSERT INTO history VALUES ('ref-delegate', 5, 'event', 'StateUpdated', '{"executionId":"ref-delegate","nodeId":"s","state":{"task":"T"}}', '2026-11-21T01:00:04.000Z');
INSERT INTO history VALUES ('ref-delegate', 6, 'command', 'ScheduleNode', '{"executionId":"ref-delegate","nodeId":"d"}', '2026-11-21T01:00:05.000Z');
INSERT INTO history VALUES ('ref-delegate', 7, 'event', 'NodeScheduled', '{"executionId":"ref-delegate","nodeId":"d"}', '2026-11-21T01:00:06.000Z');
INSERT INTO history VALUES ('ref-delegate', 8, 'event', 'ActivityRequested', '{"executionId":"ref-delegate","nodeId":"d","nodeType":"agent_delegate","agentId":"coder","protocol":"a2a","delegateCorrelationId":"ref-delegate:delegate:d","delegateInput":{"task":"T"}}', '2026-11-21T01:00:07.000Z');
INSERT INTO history VALUES ('ref-failed', 1, 'event', 'ExecutionStarted', '{"executionId":"ref-failed","workflowName":"conformance-host-activity-linear","workflowVersion":"1.0.0","inputKeys":[]}', '2026-11-21T01:00:00.000Z');
INSERT INTO history VALUES ('ref-failed', 2, 'command', 'ScheduleNode', '{"executionId":"ref-failed","nodeId":"t"}', '2026-11-21T01:00:01.000Z');
INSERT INTO history VALUES ('ref-failed', 3, 'event', 'NodeScheduled', '{"executionId":"ref-failed","nodeId":"t"}', '2026-11-21T01:00:02.000Z');
INSERT INTO history VALUES ('ref-failed', 4, 'event', 'ActivityRequested', '{"executionId":"ref-failed","nodeId":"t","nodeType":"step","attempt":1}', '2026-11-21T01:00:03.000Z');
INSERT INTO history VALUES ('ref-failed', 5, 'event', 'ActivityFailed', '{"executionId":"ref-failed","nodeId":"t","error":"boom","attempt":1,"code":"HANDLER_ERROR"}', '2026-11-21T01:00:04.000Z');
INSERT INTO history VALUES ('ref-failed', 6, 'command', 'FailNode', '{"executionId":"ref-failed","nodeId":"t","reason":"activity_failed","message":"boom","code":"HANDLER_ERROR"}', '2026-11-21T01:00:05.000Z');
INSERT INTO history VALUES ('ref-failed', 7, 'event', 'ExecutionFailed', '{"executionId":"ref-failed","error":"boom"}', '2026-11-21T01:00:06.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 1, 'event', 'ExecutionStarted', '{"executionId":"ref-lighthouse","workflowName":"lighthouse-customer-routing","workflowVersion":"1.0.0","inputKeys":["messages"]}', '2026-11-21T01:00:00.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 2, 'command', 'ScheduleNode', '{"executionId":"ref-lighthouse","nodeId":"begin"}', '2026-11-21T01:00:01.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 3, 'event', 'NodeScheduled', '{"executionId":"ref-lighthouse","nodeId":"begin"}', '2026-11-21T01:00:02.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 4, 'command', 'CompleteNode', '{"executionId":"ref-lighthouse","nodeId":"begin","output":{}}', '2026-11-21T01:00:03.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 5, 'event', 'StateUpdated', '{"executionId":"ref-lighthouse","nodeId":"begin","state":{"messages":[]}}', '2026-11-21T01:00:04.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 6, 'command', 'ScheduleNode', '{"executionId":"ref-lighthouse","nodeId":"classify"}', '2026-11-21T01:00:05.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 7, 'event', 'NodeScheduled', '{"executionId":"ref-lighthouse","nodeId":"classify"}', '2026-11-21T01:00:06.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 8, 'event', 'ActivityRequested', '{"executionId":"ref-lighthouse","nodeId":"classify","nodeType":"llm_call","timeoutMs":30000,"attempt":1}', '2026-11-21T01:00:07.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 9, 'event', 'ActivityCompleted', '{"executionId":"ref-lighthouse","nodeId":"classify","result":{"confidence":0.3,"intent":"amb"}}', '2026-11-21T01:00:08.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 10, 'command', 'CompleteNode', '{"executionId":"ref-lighthouse","nodeId":"classify","output":{"confidence":0.3,"intent":"amb"}}', '2026-11-21T01:00:09.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 11, 'event', 'StateUpdated', '{"executionId":"ref-lighthouse","nodeId":"classify","state":{"confidence":0.3,"intent":"amb","messages":[]}}', '2026-11-21T01:00:10.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 12, 'command', 'ScheduleNode', '{"executionId":"ref-lighthouse","nodeId":"route"}', '2026-11-21T01:00:11.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 13, 'event', 'NodeScheduled', '{"executionId":"ref-lighthouse","nodeId":"route"}', '2026-11-21T01:00:12.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 14, 'command', 'CompleteNode', '{"executionId":"ref-lighthouse","nodeId":"route","output":{}}', '2026-11-21T01:00:13.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 15, 'event', 'StateUpdated', '{"executionId":"ref-lighthouse","nodeId":"route","state":{"confidence":0.3,"intent":"amb","messages":[]}}', '2026-11-21T01:00:14.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 16, 'event', 'CheckpointWritten', '{"executionId":"ref-lighthouse","nodeId":"route","policy":"after_each_node","workflowVersion":"1.0.0","definitionHash":"aa","lastAppliedEventSeq":15,"stateRef":{"kind":"inline_state","state":{"confidence":0.3,"intent":"amb","messages":[]}}}', '2026-11-21T01:00:15.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 17, 'command', 'ScheduleNode', '{"executionId":"ref-lighthouse","nodeId":"human_review"}', '2026-11-21T01:00:16.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 18, 'event', 'NodeScheduled', '{"executionId":"ref-lighthouse","nodeId":"human_review"}', '2026-11-21T01:00:17.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 19, 'command', 'RaiseInterrupt', '{"executionId":"ref-lighthouse","nodeId":"human_review","prompt":"Which intent?"}', '2026-11-21T01:00:18.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 20, 'event', 'InterruptRaised', '{"executionId":"ref-lighthouse","nodeId":"human_review","prompt":"Which intent?"}', '2026-11-21T01:00:19.000Z');
INSERT INTO history VALUES ('ref-lighthouse', 21, 'event', 'CheckpointWritten', '{"executionId":"ref-lighthouse","nodeId":"human_review","policy":"after_each_node","workflowVersion":"1.0.0","definitionHash":"aa","lastAppliedEventSeq":20,"stateRef":{"kind":"inline_state","state":{"confidence":0.3,"intent":"amb","messages":[]}}}', '2026-11-21T01:00:20.000Z');
INSERT INTO history VALUES ('ref-linear', 1, 'event', 'ExecutionStarted', '{"executionId":"ref-linear","workflowName":"conformance-host-activity-linear","workflowVersion":"1.0.0","inputKeys":["a"]}', '2026-11-21T01:00:00.000Z');
INSERT INTO history VALUES ('ref-linear', 2, 'command', 'ScheduleNode', '{"executionId":"ref-linear","nodeId":"s"}', '2026-11-21T01:00:01.000Z');
INSERT INTO history VALUES ('ref-linear', 3, 'event', 'NodeScheduled', '{"executionId":"ref-linear","nodeId":"s"}', '2026-11-21T01:00:02.000Z');
INSERT INTO history VALUES ('ref-linear', 4, 'command', 'CompleteNode', '{"executionId":"ref-linear","nodeId":"s","output":{}}', '2026-11-21T01:00:03.000Z');
INSERT INTO history VALUES ('ref-linear', 5, 'event', 'StateUpdated', '{"executionId":"ref-linear","nodeId":"s","state":{"a":1}}', '2026-11-21T01:00:04.000Z');
INSERT INTO history VALUES ('ref-linear', 6, 'command', 'ScheduleNode', '{"executionId":"ref-linear","nodeId":"t"}', '2026-11-21T01:00:05.000Z');
INSERT INTO history VALUES ('ref-linear', 7, 'event', 'NodeScheduled', '{"executionId":"ref-linear","nodeId":"t"}', '2026-11-21T01:00:06.000Z');
INSERT INTO history VALUES ('ref-linear', 8, 'event', 'ActivityRequested', '{"executionId":"ref-linear","nodeId":"t","nodeType":"tool_call","timeoutMs":5000,"attempt":1}', '2026-11-21T01:00:07.000Z');
INSERT INTO history VALUES ('ref-linear', 9, 'event', 'ActivityCompleted', '{"executionId":"ref-linear","nodeId":"t","nodeType":"tool_call","result":{"r":1}}', '2026-11-21T01:00:08.000Z');
INSERT INTO history VALUES ('ref-linear', 10, 'command', 'CompleteNode', '{"executionId":"ref-linear","nodeId":"t","output":{"r":1}}', '2026-11-21T01:00:09.000Z');
INSERT INTO history VALUES ('ref-linear', 11, 'event', 'StateUpdated', '{"executionId":"ref-linear","nodeId":"t","state":{"a":1,"r":1}}', '2026-11-21T01:00:10.000Z');
INSERT INTO history VALUES ('ref-linear', 12, 'event', 'CheckpointWritten', '{"executionId":"ref-linear","nodeId":"t","policy":"after_each_node","workflowVersion":"1.0.0","definitionHash":"5f97ff9cd98775195180a7e4615ab721ba72813fa14f5b025e5ed149cb2bb873","lastAppliedEventSeq":11,"stateRef":{"kind":"inline_state","state":{"a":1,"r":1}}}', '2026-11-21T01:00:11.000Z');
INSERT INTO history VALUES ('ref-linear', 13, 'command', 'ScheduleNode', '{"executionId":"ref-linear","nodeId":"e"}', '2026-11-21T01:00:12.000Z');
INSERT INTO history VALUES ('ref-linear', 14, 'event', 'NodeScheduled', '{"executionId":"ref-linear","nodeId":"e"}', '2026-11-21T01:00:13.000Z');
INSERT INTO history VALUES ('ref-linear', 15, 'command', 'CompleteNode', '{"executionId":"ref-linear","nodeId":"e","output":{}}', '2026-11-21T01:00:14.000Z');
INSERT INTO history VALUES ('ref-linear', 16, 'event', 'ExecutionCompleted', '{"executionId":"ref-linear","result":null}', '2026-11-21T01:00:15.000Z');
INSERT INTO history VALUES ('ref-signal', 1, 'event', 'ExecutionStarted', '{"executionId":"ref-signal","workflowName":"conformance-signal-wait","workflowVersion":"1.0.0","inputKeys":[]}', '2026-11-21T01:00:00.000Z');
INSERT INTO history VALUES ('ref-signal', 2, 'command', 'ScheduleNode', '{"executionId":"ref-signal","nodeId":"start"}', '2026-11-21T01:00:01.000Z');
INSERT INTO history VALUES ('ref-signal', 3, 'event', 'NodeScheduled', '{"executionId":"ref-signal","nodeId":"start"}', '2026-11-21T01:00:02.000Z');
INSERT INTO history VALUES ('ref-signal', 4, 'command', 'CompleteNode', '{"executionId":"ref-signal","nodeId":"start","output":{}}', '2026-11-21T01:00:03.000Z');
INSERT INTO history VALUES ('ref-signal', 5, 'event', 'StateUpdated', '{"executionId":"ref-signal","nodeId":"start","state":{}}', '2026-11-21T01:00:04.000Z');
INSERT INTO history VALUES ('ref-signal', 6, 'command', 'ScheduleNode', '{"executionId":"ref-signal","nodeId":"await_approval"}', '2026-11-21T01:00:05.000Z');
INSERT INTO history VALUES ('ref-signal', 7, 'event', 'NodeScheduled', '{"executionId":"ref-signal","nodeId":"await_approval"}', '2026-11-21T01:00:06.000Z');
INSERT INTO history VALUES ('ref-signal', 8, 'command', 'StartSignalWait', '{"executionId":"ref-signal","nodeId":"await_approval","signalName":"approved"}', '2026-11-21T01:00:07.000Z');
INSERT INTO history VALUES ('ref-signal', 9, 'event', 'SignalWaitStarted', '{"executionId":"ref-signal","nodeId":"await_approval","signalName":"approved"}', '2026-11-21T01:00:08.000Z');
PRAGMA application_id = 0;
PRAGMA user_version = 0;
