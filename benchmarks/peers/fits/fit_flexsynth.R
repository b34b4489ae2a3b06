# flexsynth's Markov chain of a patient's rows (its Track B), with public limits and levels.
#
#     Rscript fit_flexsynth.R FOLDER
#
# FOLDER holds what harness.py describes. `unit` numbers the patients, and `row` orders their rows.

folder <- commandArgs(trailingOnly = TRUE)[1]
task <- jsonlite::read_json(file.path(folder, "task.json"))
train <- utils::read.csv(file.path(folder, "train.csv"))

bounds <- list()
own <- character(0)
for (column in task$columns) {
  if (is.null(column$size)) {
    bounds[[column$name]] <- c(column$lower, column$upper)
  } else {
    train[[column$name]] <- factor(train[[column$name]], levels = seq_len(column$size) - 1)
  }
  if (column$per_patient) own <- c(own, column$name)
}
control <- flexsynth::dp_control(
  epsilon = task$epsilon, delta = task$delta, mechanism = "gaussian", domain = "public", bounds = bounds,
  max_rows_per_person = task$options$most, baseline = own, transition_cross = task$options$companions
)
made <- flexsynth::synth(train, structure = ~ unit / row, privacy = control, seed = task$seed + 1)
made <- as.data.frame(made)
for (column in task$columns) {
  if (!is.null(column$size)) made[[column$name]] <- as.integer(as.character(made[[column$name]]))
}
utils::write.csv(made, file.path(folder, "synthetic.csv"), row.names = FALSE)
