package conformance_test

import (
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
)

// Each defect of the reference engine that a vector can show has a test here, named with its number (spec: execution,
// 14; mcp-tools, 12.1), which runs the vectors that show the right behaviour, on all surfaces.
func shows(t *testing.T, vectors ...string) {
	t.Helper()
	t.Parallel()
	for _, name := range vectors {
		report := run(t, filepath.Join("vectors", filepath.FromSlash(name)+".vector.json"), conformance.Options{Surfaces: surfaces()})
		if report.Total != 1 {
			t.Errorf("%s: %d vectors", name, report.Total)
		}
	}
}

func TestW02_SignalInBranchKeepsTheBlock(t *testing.T) { shows(t, "parallel/signal-in-branch") }

func TestW03_SecondResumeIsRefused(t *testing.T) { shows(t, "interrupts/second-resume") }

func TestW04_ResumeOfUnknownRunLeavesNothing(t *testing.T) { shows(t, "interrupts/resume-unknown-run") }

func TestW04b_WrongResumePayloadIsNotTerminal(t *testing.T) { shows(t, "interrupts/wrong-payload") }

func TestW06_ReplayPassesResumedInterrupt(t *testing.T) { shows(t, "interrupts/replay-past-resume") }

func TestW06b_ReplayPassesDeliveredSignal(t *testing.T) { shows(t, "signals/replay-past-signal") }

func TestW07_CancelReachesChildren(t *testing.T) { shows(t, "subworkflow/child-cancelled-with-parent") }

func TestW09_PhaseAfterResume(t *testing.T) { shows(t, "interrupts/phase-after-resume") }

func TestW10_ChildThatWaitsForSignalHasNotCompleted(t *testing.T) {
	shows(t, "subworkflow/child-waits-for-signal")
}

func TestW10b_SubworkflowsYield(t *testing.T) {
	shows(t, "subworkflow/child-waits", "subworkflow/child-asks")
}

func TestW11_ToleratedFailureWritesNoExecutionFailed(t *testing.T) {
	shows(t, "parallel/any-tolerates")
}

func TestW12_EveryNodeTypeInBranches(t *testing.T) { shows(t, "parallel/delegate-and-child") }

func TestW13_HostFailureObeysJoin(t *testing.T) { shows(t, "parallel/host-failure-tolerated") }

func TestW14_SubmitRevivesNothing(t *testing.T) { shows(t, "retries/host-failures") }

func TestW16_ResultsBelongToVisits(t *testing.T) {
	shows(t, "cycles/recorded-results-per-visit", "cycles/pending-second-visit")
}

func TestW17_EveryVisitHasItsChild(t *testing.T) { shows(t, "subworkflow/twice") }

func TestW18_RecordedFailureIsTheOutcome(t *testing.T) { shows(t, "retries/recorded-final-failure") }

func TestW19_AttemptsAreCountedOn(t *testing.T) { shows(t, "retries/recorded-attempts") }

func TestW20_RepeatedDelegateRequestKeepsContext(t *testing.T) {
	shows(t, "delegate/retry-keeps-context")
}

func TestW22_EndedRunIsNotEndedAgain(t *testing.T) {
	shows(t, "integrity/completed-run", "integrity/cancelled-run")
}

func TestW24_OriginalInputIsRemembered(t *testing.T) { shows(t, "integrity/entry-not-start") }

func TestW25_BrokenBranchesAreFindings(t *testing.T) {
	shows(t, "schema/branch-cycle", "schema/branch-entry", "schema/branch-switch-without-edge", "parallel/switch-without-edge")
}

func TestW29_DefinitionIsBoundAtStart(t *testing.T) { shows(t, "integrity/bound-at-start") }

func TestW33_DocumentsThatHashAlikeAreRefused(t *testing.T) {
	shows(t, "schema/duplicate-member", "schema/proto-member")
}

func TestMCP12_1_1_RefusedResumeChangesNothing(t *testing.T) {
	shows(t, "interrupts/wrong-payload", "interrupts/resume-unknown-run")
}

func TestMCP12_1_3_PhaseFollowsResume(t *testing.T) { shows(t, "interrupts/phase-after-resume") }

func TestMCP12_1_6_EndedRunsStayEnded(t *testing.T) {
	shows(t, "retries/host-failures", "interrupts/second-resume")
}

func TestMCP12_1_7_SignalNameInEveryAnswer(t *testing.T) { shows(t, "signals/name-in-every-answer") }

func TestMCP12_1_8_BoundBeforeTheFirstCheckpoint(t *testing.T) { shows(t, "integrity/bound-at-start") }

func TestMCP12_1_10_BranchesEndOrWork(t *testing.T) { shows(t, "parallel/delegate-and-child") }

func TestMCP12_1_11_HostCodesStayTheHosts(t *testing.T) {
	shows(t, "retries/host-code-is-not-ours", "schema/branch-cycle")
}
