package activities

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// retrySense says for each code whether another attempt can help (spec: activities, 15). Codes that are not listed,
// those of hosts and of embedders' executors included, leave the decision to the node's retry policy.
var retrySense = map[problem.Code]Retryable{
	problem.ExecutorUnsupportedNode:     RetryPointless,
	problem.ExecutorNotConfigured:       RetryPointless,
	problem.StepConfigInvalid:           RetryPointless,
	problem.HandlerNotFound:             RetryPointless,
	problem.HandlerError:                RetryUnknown,
	problem.StepCommandFailed:           RetryUnknown,
	problem.StepCommandNotStarted:       RetryUnknown,
	problem.ActivityCancelled:           RetryPointless,
	problem.LLMConfigInvalid:            RetryPointless,
	problem.LLMCredentialsMissing:       RetryPointless,
	problem.LLMProviderError:            RetryUnknown,
	problem.LLMOutputInvalid:            RetrySensible,
	problem.InvalidToolCallConfig:       RetryPointless,
	problem.MCPServerNotConfigured:      RetryPointless,
	problem.MCPCommandNotAllowed:        RetryPointless,
	problem.MCPArgumentsInvalid:         RetryPointless,
	problem.MCPToolExecutionError:       RetryUnknown,
	problem.MCPProtocolError:            RetryPointless,
	problem.MCPConnectionClosed:         RetrySensible,
	problem.MCPClientError:              RetrySensible,
	problem.ActivityTimeout:             RetrySensible,
	problem.ActivityPortInvoked:         RetryPointless,
	problem.OutputSchemaViolation:       RetrySensible,
	problem.Timeout:                     RetrySensible,
	problem.DelegateProtocolUnsupported: RetryPointless,
	problem.DelegateAgentNotFound:       RetryPointless,
	problem.DelegateProtocolError:       RetryUnknown,
	problem.DelegatePortInvoked:         RetryPointless,
	problem.A2AConfigInvalid:            RetryPointless,
	problem.A2ACredentialsMissing:       RetryPointless,
	problem.A2AProviderError:            RetryUnknown,
	problem.A2ATaskFailed:               RetryPointless,
}

// RetrySense tells whether trying again makes sense after a failure with this code; RetryUnknown for codes that the
// project does not know.
func RetrySense(code string) Retryable { return retrySense[problem.Code(code)] }

// Fail makes a Failure with a formatted message and the code's RetrySense.
func Fail(code problem.Code, format string, args ...any) *Failure {
	return &Failure{Code: string(code), Message: fmt.Sprintf(format, args...), Retryable: retrySense[code]}
}
