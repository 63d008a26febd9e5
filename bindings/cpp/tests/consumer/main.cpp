// Uses one thing of each installed header, from outside the repository.

int main() { return 0; }
