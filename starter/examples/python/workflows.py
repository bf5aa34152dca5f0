"""Execute runs from workflows in Python, with Temporal's own SDK (pip install temporalio)."""

from temporalio import workflow
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy


def result_of(error: BaseException) -> dict:
    """A run that did not succeed has its result in the details of one of the causes."""
    cause = error
    while cause is not None:
        for detail in getattr(cause, "details", ()):
            if isinstance(detail, dict) and "verdict" in detail:
                return detail
        cause = cause.__cause__
    raise error


@workflow.defn
class Child:
    @workflow.run
    async def run(self, spec: dict) -> dict:
        try:
            return await workflow.execute_child_workflow(
                "ClusterRun",
                spec,
                task_queue="clusterrun",
                # If this workflow is cancelled or closes, the tasks are stopped as by `clusterrun stop`.
                cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
            )
        except Exception as error:
            return result_of(error)
