//! [`OnlyExecutors`]: what the port of the cluster answers. Executors come and report; statements are sent by this process alone.

use std::pin::Pin;

use async_trait::async_trait;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorRegistration, ExecutorStoppedParams,
    ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult,
    HeartBeatParams, HeartBeatResult, PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult,
    RemoveSessionParams, RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult,
};
use futures::Stream;
use tonic::{Request, Response, Status};

use super::server::Scheduler;

/// Ballista's scheduler for executors.
pub(super) struct OnlyExecutors {
    scheduler: Scheduler,
}

impl OnlyExecutors {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { scheduler }
    }
}

type Answered<T> = Result<Response<T>, Status>;

fn refused<T>() -> Answered<T> {
    Err(Status::permission_denied("statements are sent to the server's Flight SQL port"))
}

/// Ballista panics where these are missing.
fn is_whole(executor: Option<&ExecutorRegistration>) -> Result<(), Status> {
    let is_whole = |executor: &ExecutorRegistration| {
        executor.host.is_some() && executor.specification.is_some() && executor.os_info.is_some()
    };
    match executor.is_some_and(is_whole) {
        true => Ok(()),
        false => Err(Status::invalid_argument("an executor says where it is and what it has")),
    }
}

#[async_trait]
impl SchedulerGrpc for OnlyExecutors {
    type ExecuteQueryPushStream = Pin<Box<dyn Stream<Item = Result<GetJobStatusResult, Status>> + Send>>;

    async fn register_executor(&self, request: Request<RegisterExecutorParams>) -> Answered<RegisterExecutorResult> {
        is_whole(request.get_ref().metadata.as_ref())?;
        SchedulerGrpc::register_executor(&self.scheduler, request).await
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Answered<HeartBeatResult> {
        is_whole(request.get_ref().metadata.as_ref())?;
        SchedulerGrpc::heart_beat_from_executor(&self.scheduler, request).await
    }

    async fn update_task_status(&self, request: Request<UpdateTaskStatusParams>) -> Answered<UpdateTaskStatusResult> {
        SchedulerGrpc::update_task_status(&self.scheduler, request).await
    }

    async fn executor_stopped(&self, request: Request<ExecutorStoppedParams>) -> Answered<ExecutorStoppedResult> {
        SchedulerGrpc::executor_stopped(&self.scheduler, request).await
    }

    /// Tasks are pushed.
    async fn poll_work(&self, _request: Request<PollWorkParams>) -> Answered<PollWorkResult> {
        refused()
    }

    async fn create_update_session(
        &self,
        _request: Request<CreateUpdateSessionParams>,
    ) -> Answered<CreateUpdateSessionResult> {
        refused()
    }

    async fn remove_session(&self, _request: Request<RemoveSessionParams>) -> Answered<RemoveSessionResult> {
        refused()
    }

    async fn execute_query_push(
        &self,
        _request: Request<ExecuteQueryParams>,
    ) -> Answered<Self::ExecuteQueryPushStream> {
        refused()
    }

    async fn execute_query(&self, _request: Request<ExecuteQueryParams>) -> Answered<ExecuteQueryResult> {
        refused()
    }

    async fn get_job_status(&self, _request: Request<GetJobStatusParams>) -> Answered<GetJobStatusResult> {
        refused()
    }

    async fn get_job_metrics(&self, _request: Request<GetJobMetricsParams>) -> Answered<GetJobMetricsResult> {
        refused()
    }

    async fn cancel_job(&self, _request: Request<CancelJobParams>) -> Answered<CancelJobResult> {
        refused()
    }

    async fn clean_job_data(&self, _request: Request<CleanJobDataParams>) -> Answered<CleanJobDataResult> {
        refused()
    }
}
